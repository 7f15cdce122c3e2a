#include "bench/broker/lease_rounds.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/broker/waiter.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/child_process.h"
#include "client/cli/demo/line_channel.h"
#include "client/cli/installed.h"
#include "client/cli/tenant_identity.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr int kRestMs = 5;
constexpr size_t kInARow = 8;

absl::StatusOr<Lease> Acquire(const Bench& bench, Client* client,
                              uint64_t bytes) {
  AcquireOptions options;
  options.device = bench.uuid;
  options.wait = kPatience;
  return client->Acquire(bytes, options);
}

absl::StatusOr<v1::PoolStatus> Status(const Bench& bench) {
  const absl::StatusOr<v1::GetStatusResponse> status =
      bench.admin->GetStatus(v1::GetStatusRequest());
  if (!status.ok()) return status.status();
  for (const v1::PoolStatus& pool : status->pools()) {
    if (pool.device().uuid() == bench.uuid) return pool;
  }
  return absl::NotFoundError("the broker has no such device");
}

// Leases what is left of the pool beside `bytes`.
absl::StatusOr<Lease> FillBeside(const Bench& bench, Client* client,
                                 uint64_t bytes) {
  const absl::StatusOr<uint64_t> pool = PoolBytes(bench);
  if (!pool.ok()) return pool.status();
  if (*pool <= bytes) return Lease();
  return Acquire(bench, client, *pool - bytes);
}

struct Victim {
  cli::ChildProcess process;
  cli::LineChannel lines;
};

absl::StatusOr<Victim> StartVictim(const Bench& bench, uint64_t bytes,
                                   const std::string& log_path) {
  absl::StatusOr<cli::ChannelPair> pair = cli::LineChannel::Pair();
  if (!pair.ok()) return pair.status();
  cli::ChildProcess::Options options;
  options.command = {cli::ThisProgram(), kVictimFlag,
                     cli::TenantSocketDir(bench.socket_dir, kTenantA),
                     bench.uuid, absl::StrCat(bytes)};
  options.stdout_fd = pair->theirs.fd();
  options.log_path = log_path;
  absl::StatusOr<cli::ChildProcess> process = cli::ChildProcess::Start(options);
  if (!process.ok()) return process.status();
  { const cli::LineChannel closed = std::move(pair->theirs); }
  Victim victim{*std::move(process), std::move(pair->ours)};
  const absl::StatusOr<std::string> line =
      victim.lines.Receive(absl::Now() + kPatience);
  if (!line.ok()) return line.status();
  if (*line != "held") return absl::InternalError(*line);
  return victim;
}

}  // namespace

absl::StatusOr<uint64_t> PoolBytes(const Bench& bench) {
  const absl::StatusOr<std::vector<QuotaView>> quotas = bench.a->GetQuota();
  if (!quotas.ok()) return quotas.status();
  for (const QuotaView& quota : *quotas) {
    if (quota.device == bench.uuid) return quota.obtainable_bytes;
  }
  return absl::NotFoundError("the tenant has no quota on the device");
}

absl::Status Settle(const Bench& bench) {
  const absl::Time deadline = absl::Now() + kPatience;
  for (;;) {
    const absl::StatusOr<v1::PoolStatus> pool = Status(bench);
    if (!pool.ok()) return pool.status();
    if (pool->granted_bytes() == 0 && pool->returned_bytes() == 0 &&
        pool->scrubbing_bytes() == 0 && pool->unreturned_bytes() == 0 &&
        pool->float_bytes() <= 2 * pool->ready_slab_bytes()) {
      return absl::OkStatus();
    }
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the pool does not come to rest: ", pool->ShortDebugString()));
    }
    poll(nullptr, 0, 2);
  }
}

absl::Status MeasureFresh(const Bench& bench, uint64_t bytes, int rounds) {
  // The first one opens the device.
  for (int i = -1; i < rounds; ++i) {
    if (absl::Status rest = Settle(bench); !rest.ok()) return rest;
    const absl::Time start = absl::Now();
    absl::StatusOr<Lease> lease = Acquire(bench, bench.a, bytes);
    const absl::Time mapped = absl::Now();
    if (!lease.ok()) return lease.status();
    if (absl::Status released = std::move(*lease).Release(); !released.ok())
      return released;
    const absl::Time released = absl::Now();
    if (i < 0) continue;
    bench.results->Add(bytes, "acquire + map", mapped - start, bench.allocate);
    bench.results->Add(bytes, "Release returns", released - mapped, bench.free);
    bench.results->Add(bytes, "acquire + map + Release", released - start,
                       bench.allocate_and_free);
  }
  return absl::OkStatus();
}

absl::Status MeasureInARow(const Bench& bench, uint64_t bytes, int rounds) {
  for (int i = -1; i < rounds; ++i) {
    if (absl::Status rest = Settle(bench); !rest.ok()) return rest;
    std::vector<Lease> leases;
    while (leases.size() < kInARow) {
      const absl::Time start = absl::Now();
      absl::StatusOr<Lease> lease = Acquire(bench, bench.a, bytes);
      const absl::Time mapped = absl::Now();
      if (!lease.ok()) return lease.status();
      if (i >= 0 && !leases.empty()) {
        bench.results->Add(bytes, "acquire + map, one after the other",
                           mapped - start, bench.allocate);
      }
      leases.push_back(*std::move(lease));
    }
    for (Lease& lease : leases) {
      if (absl::Status released = std::move(lease).Release(); !released.ok())
        return released;
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureAtRest(const Bench& bench, uint64_t bytes, int rounds) {
  for (int i = -1; i < rounds; ++i) {
    if (absl::Status settled = Settle(bench); !settled.ok()) return settled;
    poll(nullptr, 0, kRestMs);
    const absl::Time start = absl::Now();
    absl::StatusOr<Lease> lease = Acquire(bench, bench.a, bytes);
    const absl::Time mapped = absl::Now();
    if (!lease.ok()) return lease.status();
    if (absl::Status released = std::move(*lease).Release(); !released.ok())
      return released;
    if (i < 0) continue;
    bench.results->Add(bytes, "acquire + map, after 5 ms of rest",
                       mapped - start, bench.allocate);
  }
  return absl::OkStatus();
}

absl::Status MeasureReuse(const Bench& bench, uint64_t bytes, int rounds) {
  for (int i = -1; i < rounds; ++i) {
    const absl::Time start = absl::Now();
    absl::StatusOr<Lease> lease = Acquire(bench, bench.a, bytes);
    const absl::Time mapped = absl::Now();
    if (!lease.ok()) return lease.status();
    if (absl::Status released = std::move(*lease).Release(); !released.ok())
      return released;
    if (i < 0) continue;
    bench.results->Add(bytes, "acquire + map, just released", mapped - start,
                       bench.allocate);
  }
  return absl::OkStatus();
}

absl::Status MeasureHandOver(const Bench& bench, uint64_t bytes, int rounds) {
  absl::StatusOr<Lease> filler = FillBeside(bench, bench.b, bytes);
  if (!filler.ok()) return filler.status();
  for (int i = -1; i < rounds; ++i) {
    absl::StatusOr<Lease> lease = Acquire(bench, bench.a, bytes);
    if (!lease.ok()) return lease.status();
    Waiter waiter(bench.b, bytes, bench.uuid);
    if (absl::Status queued = waiter.AwaitQueued(); !queued.ok()) return queued;
    const absl::Time start = absl::Now();
    if (absl::Status released = std::move(*lease).Release(); !released.ok())
      return released;
    absl::StatusOr<Waiter::Served> served = waiter.Await();
    if (!served.ok()) return served.status();
    if (i >= 0) {
      bench.results->Add(bytes, "Release begins -> another has mapped them",
                         served->at - start, bench.allocate_and_free);
    }
    if (absl::Status released = std::move(served->lease).Release();
        !released.ok()) {
      return released;
    }
  }
  return filler->empty() ? absl::OkStatus() : std::move(*filler).Release();
}

absl::Status MeasureKill(const Bench& bench, uint64_t bytes, int rounds,
                         const std::string& log_path) {
  absl::StatusOr<Lease> filler = FillBeside(bench, bench.b, bytes);
  if (!filler.ok()) return filler.status();
  for (int i = 0; i < rounds; ++i) {
    absl::StatusOr<Victim> victim = StartVictim(bench, bytes, log_path);
    if (!victim.ok()) return victim.status();
    Waiter waiter(bench.b, bytes, bench.uuid);
    if (absl::Status queued = waiter.AwaitQueued(); !queued.ok()) return queued;
    const absl::Time start = absl::Now();
    victim->process.Signal(SIGKILL);
    absl::StatusOr<Waiter::Served> served = waiter.Await();
    if (!served.ok()) return served.status();
    bench.results->Add(bytes, "SIGKILL -> another has mapped them",
                       served->at - start);
    if (absl::Status released = std::move(served->lease).Release();
        !released.ok()) {
      return released;
    }
  }
  return filler->empty() ? absl::OkStatus() : std::move(*filler).Release();
}

int RunVictim(const std::string& socket_dir, const std::string& uuid,
              uint64_t bytes) {
  ClientOptions options;
  options.socket_dir = socket_dir;
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(std::move(options));
  AcquireOptions request;
  request.device = uuid;
  request.wait = kPatience;
  absl::StatusOr<Lease> lease =
      client.ok() ? (*client)->Acquire(bytes, request) : client.status();
  std::printf("%s\n", lease.ok() ? "held" : lease.status().ToString().c_str());
  std::fflush(stdout);
  if (!lease.ok()) return 1;
  for (;;) pause();
}

}  // namespace gmb::bench
