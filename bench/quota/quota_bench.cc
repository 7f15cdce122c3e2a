// The cost of a quota decision: one iteration is an Acquire and the Released of
// its lease, by tenants in turn that share one pool.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <variant>
#include <vector>

#include "quota/engine.h"

namespace gmb::quota {
namespace {

constexpr PoolId kPool{1};
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kSlotBytes = 64 * kMiB;

// A pool of so many slots for each tenant, one of them guaranteed.
Engine MakeEngine(uint64_t tenants, uint64_t slots) {
  Engine engine(EngineOptions{.max_handles = ~uint64_t{0} >> 1});
  const Instant start;
  (void)engine.Handle(PoolSet{kPool, slots * tenants * kSlotBytes, 2 * kMiB},
                      start);
  for (uint64_t tenant = 1; tenant <= tenants; ++tenant) {
    (void)engine.Handle(TenantSet{.tenant = TenantId{tenant}}, start);
    const TenantQuota quota{.guarantee = Amount::Bytes(kSlotBytes),
                            .limit = Amount::Bytes(6 * kSlotBytes)};
    (void)engine.Handle(QuotaSet{kPool, TenantId{tenant}, quota}, start);
  }
  return engine;
}

class Driver {
 public:
  Driver(uint64_t tenants, uint64_t slots)
      : tenants_(tenants), engine_(MakeEngine(tenants, slots)) {}

  // The lease, or 0 when the request was not granted.
  LeaseId Acquire(uint64_t tenant, uint64_t bytes, Instant deadline) {
    const Effects effects =
        engine_.Handle(quota::Acquire{.request = RequestId{++last_request_},
                                      .session = SessionId{tenant},
                                      .tenant = TenantId{tenant},
                                      .pool = kPool,
                                      .bytes = bytes,
                                      .deadline = deadline},
                       now_);
    const auto* granted = std::get_if<Granted>(&effects.front());
    return granted == nullptr ? LeaseId{} : granted->lease;
  }

  Effects Release(LeaseId lease) {
    return engine_.Handle(Released{lease}, now_);
  }

  uint64_t NextTenant() { return 1 + (next_ += 7919) % tenants_; }
  void Pass(Nanoseconds time) { now_ = now_ + time; }

 private:
  const uint64_t tenants_;
  Engine engine_;
  Instant now_;
  uint64_t last_request_ = 0;
  uint64_t next_ = 0;
};

// Nobody waits.
void EmptyQueue(benchmark::State& state) {
  Driver driver(static_cast<uint64_t>(state.range(0)), 4);
  for (auto _ : state) {
    const LeaseId lease =
        driver.Acquire(driver.NextTenant(), kSlotBytes, Instant{});
    if (lease.value == 0) std::abort();
    benchmark::DoNotOptimize(driver.Release(lease));
  }
}

// Every tenant waits to borrow and nothing can be borrowed. Leases come and go
// within a guarantee; each release looks for somebody to serve.
void FullQueue(benchmark::State& state) {
  const auto tenants = static_cast<uint64_t>(state.range(0));
  Driver driver(tenants, 2);
  for (uint64_t tenant = 1; tenant <= tenants / 2; ++tenant) {
    driver.Acquire(tenant, 3 * kSlotBytes, Instant{});
  }
  for (uint64_t tenant = 1; tenant <= tenants; ++tenant) {
    driver.Acquire(tenant, 2 * kSlotBytes, Instant::Max());
  }
  driver.Pass(std::chrono::seconds(2));  // the head may no longer be passed
  for (auto _ : state) {
    const uint64_t tenant =
        tenants / 2 + 1 + driver.NextTenant() % (tenants / 2);
    const LeaseId lease = driver.Acquire(tenant, kSlotBytes, Instant{});
    if (lease.value == 0) std::abort();
    benchmark::DoNotOptimize(driver.Release(lease));
  }
}

// A full pool turns over: a release serves the first in the queue, whose tenant
// then waits again. An iteration is these three decisions.
void Turnover(benchmark::State& state) {
  const auto tenants = static_cast<uint64_t>(state.range(0));
  Driver driver(tenants, 3);
  struct Held {
    LeaseId lease;
    uint64_t tenant;
  };
  std::vector<Held> held;
  for (uint64_t i = 0; i < 3 * tenants; ++i) {
    const uint64_t tenant = 1 + i % tenants;
    held.push_back({driver.Acquire(tenant, kSlotBytes, Instant{}), tenant});
  }
  for (uint64_t tenant = 1; tenant <= tenants; ++tenant) {
    driver.Acquire(tenant, kSlotBytes, Instant::Max());
  }
  size_t next = 0;
  for (auto _ : state) {
    Held& slot = held[(next += 7919) % held.size()];
    const Effects effects = driver.Release(slot.lease);
    const auto* granted = std::get_if<Granted>(&effects.front());
    if (granted == nullptr) std::abort();
    slot = {granted->lease, granted->tenant.value};
    driver.Acquire(slot.tenant, kSlotBytes, Instant::Max());
  }
}

BENCHMARK(EmptyQueue)->Arg(10)->Arg(1000)->Arg(10000);
BENCHMARK(FullQueue)->Arg(10)->Arg(1000)->Arg(10000);
BENCHMARK(Turnover)->Arg(10)->Arg(1000)->Arg(10000);

}  // namespace
}  // namespace gmb::quota
