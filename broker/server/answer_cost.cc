// The cost of a request to the broker, told by its answer.
#include "broker/server/answer_cost.h"

#include <algorithm>

namespace gmb::broker {
namespace {

// Nobody who means well is refused often, or turns a gate often, which looks at
// all that the session waits for.
constexpr int kRefusal = 16;
constexpr int kGateTurned = 16;
constexpr int kQuotaReport = 1;
// A look at a lease may change what it counts as, which takes some 2 us.
constexpr uint64_t kLooksAMessage = 4;
// RequestPace counts less.
constexpr uint64_t kMost = 100'000;

}  // namespace

int CostOf(const v1::BrokerMessage& answer) {
  if (answer.has_error()) return kRefusal;
  if (answer.has_gate_set()) return kGateTurned;
  return answer.has_quota_report() ? kQuotaReport : 0;
}

int CostOfLooks(uint64_t leases) {
  return static_cast<int>(std::min(leases / kLooksAMessage, kMost));
}

}  // namespace gmb::broker
