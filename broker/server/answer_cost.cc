// The cost of a request to the broker, told by its answer.
#include "broker/server/answer_cost.h"

namespace gmb::broker {
namespace {

// Nobody who means well is refused often, or turns a gate often, which looks at
// all that the session has and waits for.
constexpr int kRefusal = 16;
constexpr int kGateTurned = 16;
constexpr int kQuotaReport = 1;

}  // namespace

int CostOf(const v1::BrokerMessage& answer) {
  if (answer.has_error()) return kRefusal;
  if (answer.has_gate_set()) return kGateTurned;
  return answer.has_quota_report() ? kQuotaReport : 0;
}

}  // namespace gmb::broker
