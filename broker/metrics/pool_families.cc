// Metrics: device pools.
#include "broker/metrics/families.h"

namespace gmb::broker::metrics {
namespace {

using prometheus::MetricType;
using Families = std::vector<prometheus::MetricFamily>;

// One number of a pool, under one name.
struct PoolNumber {
  const char* name;
  const char* help;
  uint64_t (*of)(const v1::PoolStatus& pool);
};

using Pool = const v1::PoolStatus&;
constexpr PoolNumber kNumbers[] = {
    {"gmb_pool_target_bytes", "What the pool was asked to be.",
     [](Pool p) { return p.target_bytes(); }},
    {"gmb_pool_capacity_bytes",
     "The pool's size: the sum of gmb_pool_bytes over its states.",
     [](Pool p) { return p.capacity_bytes(); }},
    {"gmb_pool_guaranteed_bytes", "The sum of all guarantees on the device.",
     [](Pool p) { return p.guaranteed_bytes(); }},
    {"gmb_pool_outside_bytes",
     "Device memory taken past the broker, CUDA contexts included.",
     [](Pool p) { return p.outside_bytes(); }},
    {"gmb_pool_headroom_bytes",
     "Device memory kept outside the pool for CUDA contexts.",
     [](Pool p) { return p.headroom_bytes(); }},
    {"gmb_pool_headroom_left_bytes", "What of the headroom nobody has taken.",
     [](Pool p) { return p.headroom_left_bytes(); }},
    {"gmb_pool_slabs", "Slabs of the pool.", [](Pool p) { return p.slabs(); }},
    {"gmb_pool_waiting_requests",
     "Requests in the pool's queue, or put off beside a silent keeper.",
     [](Pool p) { return p.waiting(); }},
    {"gmb_pool_waiting_bytes", "What they ask for.",
     [](Pool p) { return p.waiting_bytes(); }},
    {"gmb_pool_draining", "Whether the pool makes no new grants.",
     [](Pool p) { return uint64_t{p.draining() ? 1U : 0U}; }},
    {"gmb_pool_problem",
     "Whether something is wrong with the device: `gmb status` says what.",
     [](Pool p) { return uint64_t{p.problem().empty() ? 0U : 1U}; }},
};

}  // namespace

void AddPoolFamilies(const v1::GetStatusResponse& status, Families* families) {
  {
    FamilyBuilder info(families, MetricType::Gauge, "gmb_pool_info",
                       "Always 1; says what the device is called.");
    for (const v1::PoolStatus& pool : status.pools()) {
      info.Add(1.0, {{"device_uuid", pool.device().uuid()},
                     {"device_name", pool.device().name()}});
    }
  }
  {
    FamilyBuilder bytes(families, MetricType::Gauge, "gmb_pool_bytes",
                        "The pool's bytes by state.");
    for (const v1::PoolStatus& pool : status.pools()) {
      const auto add = [&](absl::string_view state, uint64_t value) {
        bytes.Add(value,
                  {{"device_uuid", pool.device().uuid()}, {"state", state}});
      };
      add("granted", pool.granted_bytes());
      add("returned", pool.returned_bytes());
      add("ready", pool.ready_bytes());
      add("float", pool.float_bytes());
      add("scrubbing", pool.scrubbing_bytes());
      add("unreturned", pool.unreturned_bytes());
      add("missing", pool.missing_bytes());
    }
  }
  for (const PoolNumber& number : kNumbers) {
    FamilyBuilder family(families, MetricType::Gauge, number.name, number.help);
    for (const v1::PoolStatus& pool : status.pools())
      family.Add(number.of(pool), {{"device_uuid", pool.device().uuid()}});
  }
}

}  // namespace gmb::broker::metrics
