#ifndef GMB_CLIENT_GATE_GATE_SCOPE_H_
#define GMB_CLIENT_GATE_GATE_SCOPE_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/gate/gate.h"

namespace gmb::internal {

// A scope of a gate: while it lives, the memory of the session's leases stays
// where it is. Belongs to the thread that made it. Move-only.
class [[nodiscard]] GateScope {
 public:
  // The gate outlives the scope. Waits and fails as Gate::Enter does.
  static absl::StatusOr<GateScope> Enter(Gate& gate, absl::Duration wait) {
    if (absl::Status status = gate.Enter(wait); !status.ok()) return status;
    return GateScope(&gate);
  }
  // As Gate::EnterCapture.
  static absl::StatusOr<GateScope> EnterCapture(Gate& gate,
                                                absl::Duration wait) {
    if (absl::Status status = gate.EnterCapture(wait); !status.ok()) {
      return status;
    }
    return GateScope(&gate);
  }

  GateScope(GateScope&& other) noexcept
      : gate_(std::exchange(other.gate_, nullptr)) {}
  GateScope& operator=(GateScope&& other) noexcept {
    std::swap(gate_, other.gate_);
    return *this;
  }
  GateScope(const GateScope&) = delete;
  GateScope& operator=(const GateScope&) = delete;
  ~GateScope() {
    if (gate_ != nullptr) gate_->Leave();
  }

 private:
  explicit GateScope(Gate* gate) : gate_(gate) {}

  Gate* gate_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_GATE_GATE_SCOPE_H_
