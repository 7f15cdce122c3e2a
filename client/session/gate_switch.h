#ifndef GMB_CLIENT_SESSION_GATE_SWITCH_H_
#define GMB_CLIENT_SESSION_GATE_SWITCH_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/gate/gate.h"
#include "client/gate/gate_owner.h"
#include "client/lease/mover.h"
#include "client/session/calls.h"
#include "gmb/v1/session.pb.h"
#include "ipc/gate_page.h"

namespace gmb::internal {

// A session's gate, and the agreement with the broker on whether it is on.
// Thread-safe. The gate's parker has a thread.
class GateSwitch final : private GateOwner {
 public:
  // The broker's page where it `has_gate`; otherwise a page that nobody else
  // looks at, so that scopes are only counted. Both pointers outlive it.
  // `automatic`: an AutomaticGate parks it, and not the gate itself.
  GateSwitch(ipc::GatePage page, bool has_gate, bool automatic, Calls* calls,
             Mover* mover);
  GateSwitch(const GateSwitch&) = delete;
  GateSwitch& operator=(const GateSwitch&) = delete;
  ~GateSwitch() = default;

  [[nodiscard]] Gate& gate() { return gate_; }

  // Of an automatic gate, while it is off: the session is of the group whether its
  // gate is on or off. Waits for the broker's answer, and fails where that does
  // not say so: an older broker leaves such a session out, and would close its
  // mates without it.
  [[nodiscard]] absl::Status JoinGroup(const std::string& group);
  // While it is off: how many are in its group now.
  [[nodiscard]] absl::StatusOr<uint32_t> CountGroup();
  // As the Client's calls of these names; they wait for the broker's answer.
  [[nodiscard]] absl::Status TurnOn(absl::Duration park_after,
                                    const std::string& group);
  [[nodiscard]] absl::Status TurnOff(absl::Duration wait);

  // Tells the broker, for people, why the gate stays off from now on.
  void SayNeverLends(const std::string& why);

  // The broker has paused the session.
  void PauseNoticed();
  // Called whenever it has, and when a scope has found the gate parked; set
  // once.
  void SetListener(std::function<void()> listener);

 private:
  [[nodiscard]] v1::ClientMessage SetGate(bool on) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // With the gate off: the members of group_, which it is in then.
  [[nodiscard]] absl::StatusOr<uint32_t> AskForGroup()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // False, after a wait: another thread asked meanwhile.
  [[nodiscard]] bool MayAsk(std::chrono::steady_clock::time_point deadline);
  absl::Status Restore(std::chrono::steady_clock::time_point deadline) override;
  absl::Status Synchronize() override;
  void Woken() override { TellListener(); }
  void TellListener();

  const bool has_gate_;  // of the broker
  Calls& calls_;
  Mover& mover_;
  base::Mutex mu_;  // held while the gate is turned on or off
  // With the gate on; of an automatic one, always.
  std::string group_ ABSL_GUARDED_BY(mu_);
  const bool automatic_;
  base::Mutex restore_mu_;
  base::CondVar restored_;
  bool restoring_ ABSL_GUARDED_BY(restore_mu_) = false;
  base::Mutex listener_mu_;
  std::function<void()> listener_ ABSL_GUARDED_BY(listener_mu_);
  Gate gate_;  // last: its thread uses all of the above
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_GATE_SWITCH_H_
