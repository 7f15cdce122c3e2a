#include "bench/reclaim/owner.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmb/client.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kOwnerPatience = absl::Minutes(1);
constexpr uint64_t kCheckedBytes = 4096;

uint8_t ValueOf(size_t lease) { return static_cast<uint8_t>(lease * 37 + 1); }

class OwnerProcess {
 public:
  absl::Status Open(const std::string& socket_dir, const std::string& uuid,
                    const Owner::Leases& leases);
  absl::StatusOr<std::string> Do(const std::string& word);

 private:
  absl::StatusOr<std::string> Enter();
  absl::StatusOr<std::string> Seal();
  absl::StatusOr<std::string> Check() const;

  std::unique_ptr<Client> client_;
  std::vector<Lease> leases_;
  std::optional<Scope> scope_;  // ends before its client
};

absl::Status OwnerProcess::Open(const std::string& socket_dir,
                                const std::string& uuid,
                                const Owner::Leases& leases) {
  ClientOptions options;
  options.socket_dir = socket_dir;
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(std::move(options));
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  absl::Status status =
      client_->TurnGateOn({.park_after = absl::ZeroDuration()});
  if (status.ok()) status = Enter().status();
  AcquireOptions request;
  request.device = uuid;
  request.wait = kOwnerPatience;
  for (uint64_t i = 0; i < leases.count && status.ok(); ++i) {
    absl::StatusOr<Lease> lease = client_->Acquire(leases.bytes_each, request);
    if (!lease.ok()) return lease.status();
    status = lease->Fill(0, ValueOf(i), lease->size_bytes());
    leases_.push_back(*std::move(lease));
  }
  return status;
}

absl::StatusOr<std::string> OwnerProcess::Enter() {
  const absl::Time start = absl::Now();
  absl::StatusOr<Scope> scope = client_->Enter(kOwnerPatience);
  const absl::Duration took = absl::Now() - start;
  if (!scope.ok()) return scope.status();
  scope_ = *std::move(scope);
  return absl::StrCat(absl::ToDoubleSeconds(took));
}

absl::StatusOr<std::string> OwnerProcess::Seal() {
  for (Lease& lease : leases_) {
    if (absl::Status sealed = lease.Seal(); !sealed.ok()) return sealed;
  }
  return "sealed";
}

absl::StatusOr<std::string> OwnerProcess::Check() const {
  std::vector<uint8_t> bytes(kCheckedBytes);
  for (size_t i = 0; i < leases_.size(); ++i) {
    const Lease& lease = leases_[i];
    for (const uint64_t offset :
         {uint64_t{0}, lease.size_bytes() - kCheckedBytes}) {
      absl::Status read = lease.CopyToHost(bytes.data(), offset, bytes.size());
      if (!read.ok()) return read;
      const bool right =
          std::all_of(bytes.begin(), bytes.end(),
                      [i](uint8_t byte) { return byte == ValueOf(i); });
      if (!right) {
        return absl::DataLossError(
            absl::StrCat("lease ", i, " is not as it was, at ", offset));
      }
    }
  }
  return "right";
}

absl::StatusOr<std::string> OwnerProcess::Do(const std::string& word) {
  if (word == "enter") return Enter();
  if (word == "seal") return Seal();
  if (word == "check") return Check();
  scope_.reset();
  return "left";
}

}  // namespace

absl::StatusOr<Owner> Owner::Start(const std::string& socket_dir,
                                   const std::string& uuid,
                                   const Leases& leases,
                                   const std::string& log_path) {
  absl::StatusOr<Child> child = Child::Start(
      {kOwnerFlag, socket_dir, uuid, absl::StrCat(leases.bytes_each),
       absl::StrCat(leases.count)},
      log_path);
  if (!child.ok()) return child.status();
  return Owner(*std::move(child));
}

absl::Status Owner::Leave() { return child_.Ask("leave").status(); }
absl::Status Owner::Seal() { return child_.Ask("seal").status(); }
absl::Status Owner::Check() { return child_.Ask("check").status(); }

absl::StatusOr<absl::Duration> Owner::Enter() {
  const absl::StatusOr<double> seconds = child_.AskNumber("enter");
  if (!seconds.ok()) return seconds.status();
  return absl::Seconds(*seconds);
}

int RunOwner(const std::string& socket_dir, const std::string& uuid,
             const Owner::Leases& leases) {
  Orders orders;
  OwnerProcess owner;
  const absl::Status opened = owner.Open(socket_dir, uuid, leases);
  absl::Status told =
      opened.ok() ? orders.Answer(std::string("ready")) : orders.Answer(opened);
  if (!opened.ok()) return 1;
  while (told.ok()) {
    const absl::StatusOr<std::string> word = orders.Next();
    if (!word.ok()) break;
    told = orders.Answer(owner.Do(*word));
  }
  return 0;
}

}  // namespace gmb::bench
