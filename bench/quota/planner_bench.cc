// The cost of a reclaim plan and of finding out whether one is needed, under
// the broker's lock: one lease a tenant, as many tenants as the argument says.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "quota/backing.h"
#include "quota/engine.h"
#include "quota/planner.h"

namespace gmb::quota {
namespace {

constexpr PoolId kPool{1};
constexpr uint64_t kMiB = uint64_t{1} << 20;
const Instant kNow{int64_t{1'000'000'000'000}};

struct Rows {
  explicit Rows(uint64_t n) {
    for (uint64_t i = 1; i <= n; ++i) {
      leases.push_back(
          {.lease = LeaseId{i},
           .session = SessionId{i},
           .tenant = TenantId{i},
           .pool = kPool,
           .bytes = (1 + i % 7) * 64 * kMiB,
           .gate = i % 3 == 0 ? Gate::kActive : Gate::kParked,
           .host_room = true,
           .idle_since = {kNow.ns - static_cast<int64_t>(i * 7919 % 100'003) *
                                        1'000'000}});
      leases.back().backed_bytes = i % 5 == 0 ? leases.back().bytes : 0;
      tenants.push_back({.tenant = TenantId{i},
                         .pool = kPool,
                         .guarantee_bytes = i % 2 == 0 ? 64 * kMiB : 0,
                         .resident_bytes = leases.back().bytes});
    }
  }
  Snapshot snapshot() const { return {leases, tenants, 0}; }

  std::vector<LeaseRow> leases;
  std::vector<TenantRow> tenants;
};

void Plans(benchmark::State& state) {
  const Rows rows(static_cast<uint64_t>(state.range(0)));
  const Demand demand{.cause = Cause::kWithinGuarantee,
                      .session = SessionId{0},
                      .needs = {{kPool, 2048 * kMiB}},
                      .deadline = {kNow.ns + 10'000'000'000}};
  for (auto _ : state) {
    Plan plan = MakePlan(rows.snapshot(), demand, kNow, {});
    if (plan.planned_bytes < 1024 * kMiB) std::abort();
    benchmark::DoNotOptimize(plan);
  }
}

void WhatToBack(benchmark::State& state) {
  const Rows rows(static_cast<uint64_t>(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        NextToBack(rows.snapshot(), kNow, false, 1024 * kMiB, {}));
  }
}

// All tenants but one wait to borrow; the shortage is looked up as after every
// event.
void Shortages(benchmark::State& state) {
  const auto tenants = static_cast<uint64_t>(state.range(0));
  Engine engine(EngineOptions{.max_handles = ~uint64_t{0} >> 1});
  (void)engine.Handle(PoolSet{kPool, 64 * kMiB, 2 * kMiB}, kNow);
  for (uint64_t i = 1; i <= tenants; ++i) {
    (void)engine.Handle(TenantSet{.tenant = TenantId{i}}, kNow);
    (void)engine.Handle(
        QuotaSet{kPool, TenantId{i}, {{}, Amount::Bytes(64 * kMiB), 1}}, kNow);
    (void)engine.Handle(Acquire{.request = RequestId{i},
                                .session = SessionId{i},
                                .tenant = TenantId{i},
                                .pool = kPool,
                                .bytes = 64 * kMiB,
                                .deadline = Instant::Max(),
                                .hard = false},
                        kNow);
  }
  for (auto _ : state) {
    auto shortage = engine.NextShortage(kPool, 0);
    if (!shortage) std::abort();
    benchmark::DoNotOptimize(shortage);
  }
}

BENCHMARK(Plans)->Arg(10)->Arg(1000)->Arg(10000);
BENCHMARK(WhatToBack)->Arg(10)->Arg(1000)->Arg(10000);
BENCHMARK(Shortages)->Arg(10)->Arg(1000)->Arg(10000);

}  // namespace
}  // namespace gmb::quota
