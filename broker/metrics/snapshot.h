#ifndef GMB_BROKER_METRICS_SNAPSHOT_H_
#define GMB_BROKER_METRICS_SNAPSHOT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/metrics/event_counts.h"
#include "broker/metrics/state_disk.h"
#include "broker/report/sums.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker::metrics {

// All that one scrape shows, as values. Its parts were read one after the
// other: between them the broker went on.
struct Snapshot {
  v1::GetStatusResponse status;
  std::vector<v1::Tenant> tenants;
  report::SessionStates sessions;
  // By the tenant's name and the device.
  std::map<std::pair<std::string, std::string>, uint64_t> backed_bytes;
  Counts counts;
  std::optional<StateDisk::Reading> disk;
  uint64_t values_not_in_force = 0;
  struct Keeper {
    bool up = false;
    uint64_t left_out = 0;
    uint64_t not_adopted = 0;
  };
  std::optional<Keeper> keeper;
  struct Http {
    uint64_t connections = 0;
    uint64_t answered = 0;
    uint64_t refused = 0;
    uint64_t hung_up_on = 0;
  } http;
};

}  // namespace gmb::broker::metrics

#endif  // GMB_BROKER_METRICS_SNAPSHOT_H_
