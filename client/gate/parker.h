#ifndef GMB_CLIENT_GATE_PARKER_H_
#define GMB_CLIENT_GATE_PARKER_H_

#include <chrono>
#include <thread>

#include "base/mutex.h"
#include "client/gate/gate_owner.h"
#include "client/gate/park_timer.h"
#include "ipc/gate_page.h"

namespace gmb::internal {

// The thread that parks a gate once no scope is in and the GPU is quiet.
// Thread-safe. Nothing here is shared with another process but the cells.
class Parker {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `cells` and `owner` outlive it. `parks`: false: it has no thread, and
  // somebody else parks.
  Parker(ipc::GateCells* cells, GateOwner* owner,
         std::chrono::nanoseconds park_after, bool parks = true);
  Parker(const Parker&) = delete;
  Parker& operator=(const Parker&) = delete;
  // Waits for a synchronisation that is under way.
  ~Parker();

  // From the next look on, which these bring about. The gate is off at first.
  void SetParkAfter(std::chrono::nanoseconds park_after);
  void SetOn(bool on);

  // The word has become one that the parker does not look for by itself: the
  // gate was parked and is open, or is paused and its last scope went out.
  void Wake();

  // Returns when the word is no longer SYNC, or at `until`.
  void AwaitSyncEnd(TimePoint until);
  // Somebody else has left SYNC: who waits for that need not any more.
  void SyncEnded();

  // For a capture, called by a thread with a scope in: returns true when no
  // synchronisation is under way, and then none begins before the scope goes
  // out. False at `deadline`.
  [[nodiscard]] bool AwaitNoSynchronize(TimePoint deadline);

 private:
  void Run();
  void Park() ABSL_LOCKS_EXCLUDED(mu_);

  ipc::GateCells& cells_;
  GateOwner& owner_;
  base::Mutex mu_;
  ParkTimer timer_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
  bool synchronizing_ ABSL_GUARDED_BY(mu_) = false;
  base::CondVar parker_cv_;
  base::CondVar sync_cv_;  // waited on by threads that want in

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_GATE_PARKER_H_
