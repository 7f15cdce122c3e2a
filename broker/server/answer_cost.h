#ifndef GMB_BROKER_SERVER_ANSWER_COST_H_
#define GMB_BROKER_SERVER_ANSWER_COST_H_

#include <cstdint>

#include "gmb/v1/session.pb.h"

namespace gmb::broker {

// So many messages more than one that nobody answers a request costs that was
// answered so: for RequestPace.
[[nodiscard]] int CostOf(const v1::BrokerMessage& answer);
// Likewise, of one for which so many leases were looked at.
[[nodiscard]] int CostOfLooks(uint64_t leases);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ANSWER_COST_H_
