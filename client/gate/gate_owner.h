#ifndef GMB_CLIENT_GATE_GATE_OWNER_H_
#define GMB_CLIENT_GATE_GATE_OWNER_H_

#include <chrono>

#include "absl/status/status.h"

namespace gmb::internal {

// The calls that a gate makes to the session that owns it.
class GateOwner {
 public:
  // Blocks until the broker says that the gate may be tried again: the memory
  // is back, or the pause withdrawn. An error ends the caller's Enter with it:
  // DEADLINE_EXCEEDED, UNAVAILABLE when the session is over, or the broker's
  // refusal. Called by any number of threads at once.
  [[nodiscard]] virtual absl::Status Restore(
      std::chrono::steady_clock::time_point deadline) = 0;

  // Blocks until all work that was submitted to the devices of the session's
  // leases before the call has ended. Called on the parker's thread, never
  // while a capture is in. After an error the gate stays open.
  [[nodiscard]] virtual absl::Status Synchronize() = 0;

  // A scope has found the gate parked, and is in. Called on its thread.
  virtual void Woken() {}

 protected:
  ~GateOwner() = default;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_GATE_GATE_OWNER_H_
