#ifndef GMB_BROKER_SERVER_ANSWER_COST_H_
#define GMB_BROKER_SERVER_ANSWER_COST_H_

#include "gmb/v1/session.pb.h"

namespace gmb::broker {

// So many messages more than one that nobody answers a request costs that was
// answered so: for RequestPace.
[[nodiscard]] int CostOf(const v1::BrokerMessage& answer);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ANSWER_COST_H_
