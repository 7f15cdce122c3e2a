#include "tests/quota/trace.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

namespace gmb::quota {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kPoolBytes = 130 * 1024 * kMiB;
constexpr uint64_t kGranularityBytes = 2 * kMiB;

// Only the generator's own numbers are the same everywhere; the standard
// distributions are not, so they are made here.
class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}

  uint64_t Below(uint64_t bound) { return generator_() % bound; }
  double Unit() {
    return static_cast<double>(generator_() >> 11) / (uint64_t{1} << 53);
  }
  double Exponential(double mean) { return -mean * std::log(1 - Unit()); }
  Nanoseconds Time(double mean_seconds) {
    return Nanoseconds(static_cast<int64_t>(Exponential(mean_seconds) * 1e9));
  }

 private:
  std::mt19937_64 generator_;
};

struct Home {
  std::vector<PoolId> pools;
  double busy_from = 0;  // of the trace's length
  double busy_until = 0;
};

uint64_t RequestBytes(Random& random) {
  const uint64_t kind = random.Below(100);
  if (kind < 70) return kMiB * (1 + random.Below(2048));
  if (kind < 97) return kMiB * (2048 + random.Below(14 * 1024));
  return kMiB * (16 * 1024 + random.Below(64 * 1024));
}

}  // namespace

Trace MakeTrace(const TraceOptions& options) {
  Random random(options.seed);
  Trace trace{.pool_bytes = kPoolBytes,
              .granularity_bytes = kGranularityBytes,
              .quotas = {},
              .requests = {},
              .changes = {}};
  std::vector<Home> homes(options.tenants + 1);
  for (uint64_t tenant = 1; tenant <= options.tenants; ++tenant) {
    std::set<PoolId> pools;
    while (pools.size() < std::min(options.pools_per_tenant, options.pools)) {
      pools.insert(PoolId{1 + random.Below(options.pools)});
    }
    Home& home = homes[tenant];
    home.pools.assign(pools.begin(), pools.end());
    home.busy_from = random.Unit() * 0.8;
    home.busy_until = home.busy_from + 0.1 + random.Unit() * 0.3;
    for (const PoolId pool : home.pools) {
      const TenantQuota quota{
          .guarantee = Amount::Fraction(0.02 * random.Unit()),
          .limit = Amount::Fraction(0.2 + 0.6 * random.Unit()),
          .weight = static_cast<double>(1 + random.Below(4))};
      trace.quotas.push_back({pool, TenantId{tenant}, quota});
    }
  }
  const double seconds = std::chrono::duration<double>(options.length).count();
  while (trace.requests.size() < options.requests) {
    const TenantId tenant{1 + random.Below(options.tenants)};
    const Home& home = homes[tenant.value];
    const double at = random.Unit();
    // A quiet tenant makes a tenth of the requests.
    const bool busy = at >= home.busy_from && at < home.busy_until;
    if (!busy && random.Below(10) != 0) continue;
    trace.requests.push_back(
        {.at =
             Instant{} + Nanoseconds(static_cast<int64_t>(at * seconds * 1e9)),
         .tenant = tenant,
         .pool = home.pools[random.Below(home.pools.size())],
         .bytes = RequestBytes(random),
         .wait = random.Below(3) == 0 ? Nanoseconds(0) : random.Time(20),
         .hold = random.Time(150)});
  }
  std::stable_sort(trace.requests.begin(), trace.requests.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  for (uint64_t i = 0; i < options.requests / 100; ++i) {
    TraceQuota change = trace.quotas[random.Below(trace.quotas.size())];
    change.quota.guarantee = Amount::Fraction(0.05 * random.Unit());
    change.quota.limit = Amount::Fraction(0.1 + 0.8 * random.Unit());
    trace.changes.push_back(change);
  }
  return trace;
}

}  // namespace gmb::quota
