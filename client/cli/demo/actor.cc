// The demo: a tenant's process, which leases for real as it is told.
#include "client/cli/demo/actor.h"

#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "client/cli/demo/line_channel.h"
#include "client/cli/error_report.h"
#include "client/cli/hold/filled_lease.h"
#include "client/cli/text/json.h"
#include "gmb/client.h"
#include "gmb/error.h"

namespace gmb::cli {
namespace {

// The same clock in every process of a machine.
int64_t MonotonicNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

class Actor {
 public:
  Actor() : commands_(dup(STDIN_FILENO)), answers_(dup(STDOUT_FILENO)) {}

  ExitCode Play(const std::string& socket_dir);

 private:
  absl::Status Connect(const std::string& socket_dir);
  // False: the play is over.
  bool Obey(const Json& command);
  absl::Status LeaseMemory(const Json& command);
  absl::Status VerifyAll();
  absl::Status ReleaseOne(const std::string& name);
  absl::Status FallAsleep();
  absl::Status WakeUp(absl::Duration wait);

  void Say(const char* event, Json facts = Json::object());
  void SayFailed(const absl::Status& status);
  void SayRefused(const absl::Status& status);

  LineChannel commands_;
  std::mutex mu_;
  LineChannel answers_;  // guarded by mu_: notices come from another thread
  std::unique_ptr<Client> client_;
  std::map<std::string, FilledLease> leases_;
  std::map<std::string, const void*> places_;  // of leases_ when fallen asleep
};

void Actor::Say(const char* event, Json facts) {
  facts["event"] = event;
  const std::lock_guard<std::mutex> lock(mu_);
  // Without a listener the next command does not come, which ends the play.
  answers_.Send(LineJson(facts)).IgnoreError();
}

void Actor::SayFailed(const absl::Status& status) {
  Say("failed", {{"code", static_cast<int>(status.code())},
                 {"message", std::string(status.message())}});
}

void Actor::SayRefused(const absl::Status& status) {
  Json facts = ErrorToJson(status)["error"];
  facts["code"] = static_cast<int>(status.code());
  Say("refused", std::move(facts));
}

absl::Status Actor::Connect(const std::string& socket_dir) {
  ClientOptions options;
  options.socket_dir = socket_dir;
  options.program = "gmb demo";
  options.on_budget_changed = [this](const QuotaView& quota) {
    Say("budget", {{"limit_bytes", quota.limit_bytes},
                   {"over_limit_bytes", quota.over_limit_bytes}});
  };
  GMB_ASSIGN_OR_RETURN(client_, Client::Connect(std::move(options)));
  Say("connected",
      {{"tenant", client_->tenant()}, {"session_id", client_->session_id()}});
  return absl::OkStatus();
}

absl::Status Actor::LeaseMemory(const Json& command) {
  AcquireOptions request;
  request.wait = absl::Seconds(command.at("wait").get<double>());
  request.on_waiting = [this](uint64_t ahead) {
    Say("waiting", {{"ahead", ahead}});
  };
  absl::StatusOr<Lease> lease =
      client_->Acquire(command.at("bytes").get<uint64_t>(), request);
  if (!lease.ok()) {
    // Without a reason it is no refusal of the broker's.
    if (!GetErrorDetail(lease.status()).has_value()) return lease.status();
    SayRefused(lease.status());
    return absl::OkStatus();
  }
  Say("granted", {{"lease_id", lease->id()},
                  {"bytes", lease->size_bytes()},
                  {"monotonic_ns", MonotonicNanoseconds()}});
  if (command.at("expect_zero").get<bool>()) {
    GMB_RETURN_IF_ERROR(CheckZero(*lease));
  }
  GMB_ASSIGN_OR_RETURN(
      FilledLease filled,
      FilledLease::Fill(*std::move(lease),
                        Pattern::Seeded(std::random_device{}())));
  Say("filled", {{"checksum", Checksum::Text(filled.checksum())}});
  leases_.insert_or_assign(command.at("name").get<std::string>(),
                           std::move(filled));
  return absl::OkStatus();
}

absl::Status Actor::VerifyAll() {
  uint64_t bytes = 0;
  for (const auto& [name, filled] : leases_) {
    GMB_RETURN_IF_ERROR(filled.Verify());
    bytes += filled.lease().size_bytes();
  }
  Say("verified", {{"leases", leases_.size()}, {"bytes", bytes}});
  return absl::OkStatus();
}

absl::Status Actor::ReleaseOne(const std::string& name) {
  const auto found = leases_.find(name);
  if (found == leases_.end())
    return absl::NotFoundError("no such lease here: " + name);
  absl::Status released = std::move(found->second).Release();
  leases_.erase(found);
  if (released.ok()) Say("released");
  return released;
}

absl::Status Actor::FallAsleep() {
  places_.clear();
  for (const auto& [name, filled] : leases_)
    places_[name] = filled.lease().data();
  GMB_RETURN_IF_ERROR(client_->TurnGateOn());
  Say("idle");
  return absl::OkStatus();
}

absl::Status Actor::WakeUp(absl::Duration wait) {
  const int64_t asked = MonotonicNanoseconds();
  GMB_ASSIGN_OR_RETURN(const Scope scope, client_->Enter(wait));
  const int64_t took = MonotonicNanoseconds() - asked;
  uint64_t bytes = 0;
  Json places = Json::object();
  bool same_places = true;
  for (const auto& [name, filled] : leases_) {
    GMB_RETURN_IF_ERROR(filled.Verify());
    bytes += filled.lease().size_bytes();
    places[name] = absl::StrFormat("%p", filled.lease().data());
    same_places &= places_.at(name) == filled.lease().data();
  }
  Say("woken", {{"took_ns", took},
                {"bytes", bytes},
                {"places", std::move(places)},
                {"same_places", same_places}});
  return absl::OkStatus();
}

bool Actor::Obey(const Json& command) {
  const std::string what = command.at("do").get<std::string>();
  if (what == "quit") return false;
  absl::Status status = absl::InvalidArgumentError("unknown command: " + what);
  if (what == "lease") status = LeaseMemory(command);
  if (what == "verify") status = VerifyAll();
  if (what == "release")
    status = ReleaseOne(command.at("name").get<std::string>());
  if (what == "idle") status = FallAsleep();
  if (what == "wake")
    status = WakeUp(absl::Seconds(command.at("wait").get<double>()));
  if (!status.ok()) SayFailed(status);
  return true;
}

ExitCode Actor::Play(const std::string& socket_dir) {
  if (absl::Status status = Connect(socket_dir); !status.ok()) {
    SayFailed(status);
    return ExitCodeOf(status);
  }
  while (true) {
    const absl::StatusOr<std::string> line =
        commands_.Receive(absl::InfiniteFuture());
    if (!line.ok()) return ExitCode::kFailed;  // the demo is gone
    if (!Obey(Json::parse(*line))) break;
  }
  while (!leases_.empty()) {
    if (absl::Status status = ReleaseOne(leases_.begin()->first);
        !status.ok()) {
      SayFailed(status);
      return ExitCode::kFailed;
    }
  }
  return ExitCode::kOk;
}

}  // namespace

ExitCode PlayActor(const std::string& socket_dir) {
  return Actor().Play(socket_dir);
}

}  // namespace gmb::cli
