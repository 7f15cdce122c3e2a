#ifndef GMB_BROKER_REPORT_SUMS_H_
#define GMB_BROKER_REPORT_SUMS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "broker/machine/state.h"
#include "broker/report/page.h"
#include "gmb/v1/admin.pb.h"
#include "quota/units.h"

namespace gmb::broker::report {

// How many sessions each tenant has, by what their gates say.
struct SessionStates {
  struct Row {
    std::string tenant;
    std::array<uint64_t, v1::SessionInfo::Gate_ARRAYSIZE> sessions{};
  };
  std::map<quota::TenantId, Row> by_tenant;
};
// How many bytes of each tenant's leases on a pool are there, and have a true
// copy in the host pool as well.
struct BackedSums {
  std::map<std::pair<quota::TenantId, quota::PoolId>, uint64_t> bytes;
};

// Both are called under the core's lock, slice by slice, each of at most
// kLooksASlice looks. Operators' own sessions are not counted.
void CountSessions(const State& state, quota::Instant now, Page* page,
                   SessionStates* states);
void SumBacked(const State& state, Page* page, BackedSums* sums);

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_SUMS_H_
