#ifndef GMB_BROKER_MACHINE_DEPARTURE_H_
#define GMB_BROKER_MACHINE_DEPARTURE_H_

#include <functional>

#include "absl/status/status.h"
#include "quota/units.h"

namespace gmb::broker {

// A tenant on its way out: it opens no sessions and is granted nothing more.
struct Departure {
  using Done = std::function<void(const absl::Status&)>;

  // When its sessions should have ended; then, whether they were killed, and
  // when those should be gone.
  quota::Instant deadline;
  bool killed = false;
  Done done = nullptr;  // null: answered, and about to be deleted
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_DEPARTURE_H_
