#ifndef GMB_CLIENT_GATE_GATE_H_
#define GMB_CLIENT_GATE_GATE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/fork_guard.h"
#include "client/gate/gate_owner.h"
#include "client/gate/parker.h"
#include "ipc/gate_page.h"

namespace gmb::internal {

struct GateOptions {
  // Without a scope for so long, the gate is parked. At most a day.
  absl::Duration park_after = absl::Milliseconds(50);
  // So long a scope waits for the GPU to become quiet before it takes a gate
  // back that was about to be parked.
  absl::Duration sync_patience = absl::Milliseconds(1);
  // False: an Idler parks it, which knows of calls that enter no scope.
  bool parks_by_itself = true;
};

// A session's gate, client side: scopes are where the program uses its leases,
// outside of them the broker may take the memory away for a while.
//
// Off at first: the session counts as active, and scopes come in at once. The
// program turns it on when all of its use is inside scopes.
//
// Thread-safe. A scope goes out on the thread on which it came in; scopes nest.
// In a forked child every gate is off and clear: Enter fails with
// FAILED_PRECONDITION, Leave does nothing, and the object must not be
// destroyed.
class Gate {
 public:
  // `owner` outlives it. Starts the parker's thread.
  Gate(ipc::GatePage page, GateOwner* owner, const GateOptions& options = {});
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  // Waits until the devices are synchronised if that is under way. No scope may
  // be in.
  ~Gate();

  // Lets a scope in. Nested, this counts and nothing else. While the broker has
  // the memory, or has paused the session, it blocks for at most `wait`, and
  // fails as GateOwner::Restore does, or with DEADLINE_EXCEEDED;
  // RESOURCE_EXHAUSTED when the thread is in scopes of too many gates.
  [[nodiscard]] absl::Status Enter(absl::Duration wait);

  // The same for a scope in which a stream is captured. Returns when no context
  // is being synchronised, which would destroy the capture.
  [[nodiscard]] absl::Status EnterCapture(absl::Duration wait);

  // False, and nothing is done, when this thread is in no scope of the gate.
  bool Leave();

  // A scope that is no thread's; each that came in goes out once, on any.
  [[nodiscard]] absl::Status EnterForProcess(absl::Duration wait);
  void LeaveForProcess();

  // Whether it is turned on.
  [[nodiscard]] bool on();

  // Scopes of this gate in which the calling thread is.
  [[nodiscard]] uint32_t depth() const;

  // On: outside of scopes the memory may be taken. When on already, this only
  // sets `park_after`, where it is given.
  [[nodiscard]] absl::Status TurnOn(
      std::optional<absl::Duration> park_after = std::nullopt);
  // Off: as if a scope were in that never goes out; waits and fails as Enter
  // does. Does nothing when off.
  [[nodiscard]] absl::Status TurnOff(absl::Duration wait);

  // To be called when the broker says that it has paused the session: if no
  // scope is in, the gate need not be open for park_after.
  void PauseNoticed();

  // To be called by who parks in the parker's place, when it has left SYNC.
  void SyncEnded() { parker_.SyncEnded(); }

  // Of its page; valid as long as the gate is.
  [[nodiscard]] ipc::GateCells& cells() const { return page_.cells(); }

  // Outermost scopes that went out, counted before they do; zero for a gate
  // that parks by itself.
  [[nodiscard]] uint64_t scopes_left() const {
    return scopes_left_.load(std::memory_order_acquire);
  }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Attempt;  // of one thread to get in

  absl::Status EnterOutermost(bool capture, absl::Duration wait);
  absl::Status EnterSlowly(Attempt& attempt);
  absl::Status AskOwner(Attempt& attempt);
  bool TryMove(ipc::GateWord& seen, ipc::GateWord next);
  void LeaveOutermost();
  absl::Status AwaitCaptureSafe(TimePoint deadline);

  const ForkGuard fork_guard_;
  const uint64_t id_;
  const std::chrono::nanoseconds sync_patience_;
  const bool parks_by_itself_;
  const ipc::GatePage page_;
  GateOwner& owner_;
  std::atomic<uint64_t> scopes_left_{0};
  Parker parker_;

  base::Mutex switch_mu_;  // held while the gate is turned on or off
  bool on_ ABSL_GUARDED_BY(switch_mu_) = false;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_GATE_GATE_H_
