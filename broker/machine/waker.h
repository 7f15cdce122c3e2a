#ifndef GMB_BROKER_MACHINE_WAKER_H_
#define GMB_BROKER_MACHINE_WAKER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "broker/machine/fact.h"
#include "broker/machine/gates.h"
#include "broker/machine/lease_mover.h"
#include "broker/machine/recalls.h"
#include "broker/machine/session.h"
#include "broker/machine/session_desk.h"
#include "broker/machine/sharing.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "gmb/v1/session.pb.h"
#include "quota/effect.h"
#include "quota/units.h"

namespace gmb::broker {

// Sessions that wait for their memory: Restores, and when closed gates open
// again.
class Waker {
 public:
  struct Below {
    SessionDesk& sessions;
    Gates& gates;
    LeaseMover& mover;
    Recalls& recalls;
    Sharing& sharing;
  };
  Waker(State& state, const Below& below)
      : state_(state),
        sessions_(below.sessions),
        gates_(below.gates),
        mover_(below.mover),
        recalls_(below.recalls),
        sharing_(below.sharing) {}

  void Restore(Session* session, uint64_t client_id, const v1::Restore& restore,
               Turn& turn);
  // The next step towards gates that are open, if there is one: everything that
  // ends a step of a session's leases comes here.
  void AdvanceRestore(Session* session, Turn& turn);
  // The same of each of them; a group is looked at once.
  void AdvanceRestores(const std::vector<uint64_t>& sessions, Turn& turn);
  // The same of all who use the leases, or wait to attach to them.
  void AdvanceUsersOf(absl::Span<const quota::LeaseId> leases, Turn& turn);
  // The engine's Restores in these sessions' names are cancelled. Others who
  // need the same leases ask anew at once, these sessions when they advance.
  void CancelFor(const std::vector<Session*>& members, Turn& turn);
  // The session has ended.
  void Forget(Session* session);
  void ExpireRestores(Turn& turn);

  // --- The engine's answers to Restores, and facts.
  void OnRestored(const quota::Restored& restored, Turn& turn);
  void OnDenied(const quota::Denied& denied, Turn& turn);
  void OnMoveFailed(const MoveFailed& failed, Turn& turn);
  void OnLeaseLeft(const LeaseLeft& left, Turn& turn);
  void OnSessionEnded(const SessionEnded& ended, Turn& turn);

 private:
  void AskForRestore(const std::vector<Session*>& members,
                     std::vector<quota::LeaseId> evicted, Turn& turn);
  // Whether one of their leases is known to be on its way.
  [[nodiscard]] bool AnyMoves(const std::vector<Session*>& members, Turn& turn);
  void AnswerMembers(Session* session, const absl::Status& status, Turn& turn);
  void AnswerRestores(Session* session, const absl::Status& status, Turn& turn);
  [[nodiscard]] absl::Status TooLate(Session* session) const;
  void Reopen(Session* session, Turn& turn);
  void BringBack(const std::vector<quota::LeaseId>& leases, Turn& turn);
  // Their bytes are granted, or begin to be: what they have stays, for the time
  // that this should take.
  void KeepWhatComes(const std::vector<Session*>& members, quota::Instant now);
  void OnRestoredInPart(const quota::Restored& restored, Turn& turn);
  void OnRestoreDenied(const quota::Denied& denied, Session* session,
                       Turn& turn);
  void AdvanceOthers(quota::RequestId request,
                     const std::vector<Session*>& but_for, Turn& turn);

  State& state_;
  SessionDesk& sessions_;
  Gates& gates_;
  LeaseMover& mover_;
  Recalls& recalls_;
  Sharing& sharing_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_WAKER_H_
