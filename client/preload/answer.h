#ifndef GMB_CLIENT_PRELOAD_ANSWER_H_
#define GMB_CLIENT_PRELOAD_ANSWER_H_

#include <optional>

#include "client/preload/broker_link.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// The result of a call; nothing when the driver is to answer it.
using Answer = std::optional<CUresult>;

[[nodiscard]] Answer AnswerOf(Outcome outcome);
// Of BrokerLink::Export, as a result.
[[nodiscard]] CUresult SharingResult(Outcome outcome);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_ANSWER_H_
