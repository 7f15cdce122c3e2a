#ifndef GMB_BROKER_MACHINE_GATEKEEPER_H_
#define GMB_BROKER_MACHINE_GATEKEEPER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "broker/machine/fact.h"
#include "broker/machine/gates.h"
#include "broker/machine/host_desk.h"
#include "broker/machine/index_keeper.h"
#include "broker/machine/lease.h"
#include "broker/machine/lease_mover.h"
#include "broker/machine/lookout.h"
#include "broker/machine/pause_look.h"
#include "broker/machine/quota_desk.h"
#include "broker/machine/session.h"
#include "broker/machine/session_desk.h"
#include "broker/machine/sharing.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "broker/machine/waker.h"
#include "gmb/v1/session.pb.h"
#include "quota/units.h"

namespace gmb::broker {

// Why a pause is over that did not park those it was for. In vain: nothing of
// them can be taken any more. Held up: one that had parked has to go on, since
// another of its group may wait for it.
enum class PauseEnd : uint8_t { kTooLate, kHeldUp, kInVain, kNotNeeded };

// Gates that programs turn on and off (gate.cc), and sessions that are paused,
// so that they park (pause.cc).
class Gatekeeper {
 public:
  struct Below {
    IndexKeeper& index;
    QuotaDesk& quota;
    SessionDesk& sessions;
    Gates& gates;
    Lookout& lookout;
    HostDesk& host;
    LeaseMover& mover;
    Sharing& sharing;
    Waker& waker;
  };
  Gatekeeper(State& state, const Below& below)
      : state_(state),
        index_(below.index),
        quota_(below.quota),
        sessions_(below.sessions),
        gates_(below.gates),
        lookout_(below.lookout),
        host_(below.host),
        mover_(below.mover),
        sharing_(below.sharing),
        waker_(below.waker) {}

  void SetGate(Session* session, uint64_t client_id, const v1::SetGate& message,
               Turn& turn);
  // Requests that wait for leases of all members are made anew.
  void LeaveGroup(Session* session, Turn& turn);
  // The session has ended.
  void Forget(const Session& session);
  // It has ended, and none of the leases that it still has waits for its pause.
  void EndPauseOf(Session* session, Turn& turn);

  void StartPause(Lease* lease, quota::Instant until, Turn& turn);
  void CheckPauses(Turn& turn);
  void OnLeaseLeft(const LeaseLeft& left);
  void OnSessionEnded(const SessionEnded& ended, Turn& turn);

 private:
  // Sessions whose pauses begin and end together, and the leases they are for.
  struct Pause {
    std::vector<Session*> sessions;
    std::vector<Lease*> leases;
    uint64_t looks = 0;  // at sessions and leases, to find these
  };

  absl::Status TurnGateOn(Session* session, const std::string& group,
                          Turn& turn);
  // With a group: it is a member all the same, or becomes one.
  absl::Status TurnGateOff(Session* session, const std::string& group,
                           Turn& turn);
  void SoftenAll(const std::vector<Session*>& sessions, Turn& turn);
  absl::Status HardenAll(const std::vector<Session*>& sessions, Turn& turn);
  // Of one group. Where it is refused `joined`, if any, is in none again.
  absl::Status Hold(const std::vector<Session*>& sessions, Session* joined,
                    Turn& turn);
  [[nodiscard]] std::vector<Session*> ToHold(Session* session,
                                             bool stays) const;
  void EndUseOfGate(Session* session, const std::vector<Session*>& members,
                    Turn& turn);
  [[nodiscard]] Pause PauseOf(Session* session) const;
  // How much it has looked at.
  uint64_t CheckPause(Session* session, quota::Instant now, Turn& turn);
  void OnPauseFailed(const Pause& pause, const PauseLook& look, PauseEnd end,
                     quota::Instant now);
  void WithdrawPause(Session* session, const Pause& pause, PauseEnd end,
                     Turn& turn);
  // Whether the lease waited for a pause, and no longer does.
  bool ForgetPauseOf(Lease* lease);
  void ForgetPausesOf(const std::vector<Session*>& sessions, Turn& turn);
  void EndPause(const std::vector<Session*>& sessions, Turn& turn);

  State& state_;
  IndexKeeper& index_;
  QuotaDesk& quota_;
  SessionDesk& sessions_;
  Gates& gates_;
  Lookout& lookout_;
  HostDesk& host_;
  LeaseMover& mover_;
  Sharing& sharing_;
  Waker& waker_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_GATEKEEPER_H_
