#ifndef GMB_BROKER_REPORT_STUCK_TEXT_H_
#define GMB_BROKER_REPORT_STUCK_TEXT_H_

#include <string>

#include "broker/machine/device_job.h"

namespace gmb::broker::report {

// Of bytes that do not come back by themselves.
[[nodiscard]] std::string StuckText(const StuckBytes& stuck);

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_STUCK_TEXT_H_
