#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "gmb/client.h"
#include "gmb/error.h"
#include "proto/amount_text.h"

// Two tenants that lease the same bytes in turn, so that slabs are destroyed
// and created all the time, for so many turns or until SIGTERM; `waiting` until
// SIGUSR1 comes. Says when grants fail and when they come again, and checks
// that no tenant sees the other's bytes.
namespace gmb {
namespace {

constexpr uint64_t kLookedAtBytes = uint64_t{1} << 20;
constexpr absl::Duration kWait = absl::Milliseconds(200);

constexpr int kManyTurns = 40;

std::atomic<bool> stopped = false;

struct Tenant {
  std::unique_ptr<Client> client;
  uint8_t mark;
};

struct Tally {
  int granted = 0;
  int failed = 0;
  absl::Time failing_since = absl::InfiniteFuture();
  absl::Duration longest;
};

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Fresh memory is zero; returned memory may hold this tenant's own bytes.
absl::Status LookForOthers(const Lease& lease, uint8_t own) {
  std::vector<uint8_t> found(std::min(kLookedAtBytes, lease.size_bytes()));
  for (const uint64_t offset :
       {uint64_t{0}, lease.size_bytes() - found.size()}) {
    if (absl::Status copied =
            lease.CopyToHost(found.data(), offset, found.size());
        !copied.ok()) {
      return copied;
    }
    if (std::any_of(found.begin(), found.end(),
                    [own](uint8_t byte) { return byte != 0 && byte != own; })) {
      return absl::DataLossError("another tenant's bytes were seen");
    }
  }
  return absl::OkStatus();
}

absl::Status Mark(Lease* lease, uint8_t own) {
  const uint64_t bytes = std::min(kLookedAtBytes, lease->size_bytes());
  absl::Status filled = lease->Fill(0, own, bytes);
  filled.Update(lease->Fill(lease->size_bytes() - bytes, own, bytes));
  return filled;
}

void Count(bool granted, const absl::Status& why, Tally* tally) {
  const absl::Time now = absl::Now();
  if (!granted) {
    ++tally->failed;
    if (tally->failing_since != absl::InfiniteFuture()) return;
    tally->failing_since = now;
    Say("failing " + why.ToString());
    return;
  }
  ++tally->granted;
  if (tally->failing_since == absl::InfiniteFuture()) return;
  const absl::Duration without = now - tally->failing_since;
  tally->longest = std::max(tally->longest, without);
  tally->failing_since = absl::InfiniteFuture();
  Say("again after " + absl::FormatDuration(without));
}

absl::Status Turn(const Tenant& tenant, uint64_t bytes, Tally* tally) {
  AcquireOptions options;
  options.wait = kWait;
  absl::StatusOr<Lease> lease = tenant.client->Acquire(bytes, options);
  // A refusal is what is counted; anything else is wrong.
  if (!lease.ok() && !GetErrorDetail(lease.status()).has_value())
    return lease.status();
  Count(lease.ok(), lease.status(), tally);
  if (!lease.ok()) return absl::OkStatus();
  if (absl::Status clean = LookForOthers(*lease, tenant.mark); !clean.ok())
    return clean;
  if (absl::Status marked = Mark(&*lease, tenant.mark); !marked.ok())
    return marked;
  return std::move(*lease).Release();
}

absl::Status Run(const std::array<std::string, 2>& socket_dirs,
                 const std::string& size, int turns,
                 const sigset_t* start_signal) {
  const absl::StatusOr<uint64_t> bytes = proto::ParseBytes(size);
  if (!bytes.ok()) return bytes.status();
  std::array<Tenant, 2> tenants;
  for (size_t i = 0; i < tenants.size(); ++i) {
    ClientOptions options;
    options.socket_dir = socket_dirs[i];
    auto client = Client::Connect(std::move(options));
    if (!client.ok()) return client.status();
    // Before anybody takes the headroom: mapping a lease needs a context.
    if (auto first = (*client)->Acquire(1); !first.ok()) return first.status();
    tenants[i] = {*std::move(client), static_cast<uint8_t>(0xA1 + i)};
  }
  if (int signal = 0; start_signal != nullptr) {
    Say("waiting");
    sigwait(start_signal, &signal);
  }
  Say("churning");
  Tally tally;
  absl::Status status;
  for (int turn = 0; status.ok() && turn < turns && !stopped; ++turn) {
    if (turn == kManyTurns) Say("many turns");
    status = Turn(tenants[turn % tenants.size()], *bytes, &tally);
  }
  std::printf(
      "granted %d failed %d longest_without_ms %.1f last %s\n", tally.granted,
      tally.failed, absl::ToDoubleMilliseconds(tally.longest),
      tally.failing_since == absl::InfiniteFuture() ? "granted" : "failed");
  if (status.ok() && tally.granted == 0)
    return absl::ResourceExhaustedError("nothing was granted");
  return status;
}

}  // namespace
}  // namespace gmb

int main(int argc, char** argv) {
  int turns = std::numeric_limits<int>::max();
  const bool waits = argc == 5 && std::string(argv[4]) == "waiting";
  if (argc != 4 && !waits &&
      !(argc == 5 && absl::SimpleAtoi(argv[4], &turns))) {
    std::fprintf(
        stderr,
        "usage: gpu_churn SOCKET_DIR SOCKET_DIR BYTES [TURNS|waiting]\n");
    return 2;
  }
  sigset_t start_signal;
  sigemptyset(&start_signal);
  sigaddset(&start_signal, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &start_signal, nullptr);  // for all threads
  std::signal(SIGTERM, [](int) { gmb::stopped = true; });
  const absl::Status status = gmb::Run({argv[1], argv[2]}, argv[3], turns,
                                       waits ? &start_signal : nullptr);
  if (!status.ok()) {
    std::fprintf(stderr, "gpu_churn: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
