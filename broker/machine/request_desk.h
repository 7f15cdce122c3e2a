#ifndef GMB_BROKER_MACHINE_REQUEST_DESK_H_
#define GMB_BROKER_MACHINE_REQUEST_DESK_H_

#include "absl/status/status.h"
#include "broker/machine/fact.h"
#include "broker/machine/host_desk.h"
#include "broker/machine/lease.h"
#include "broker/machine/lease_desk.h"
#include "broker/machine/quota_desk.h"
#include "broker/machine/session_desk.h"
#include "broker/machine/sharing.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "gmb/v1/session.pb.h"
#include "quota/effect.h"

namespace gmb::broker {

// Acquires, until the engine has answered: then each is a lease that is being
// made, or a refusal.
class RequestDesk {
 public:
  struct Below {
    QuotaDesk& quota;
    SessionDesk& sessions;
    HostDesk& host;
    LeaseDesk& leases;
    Sharing& sharing;
  };
  RequestDesk(State& state, const Below& below)
      : state_(state),
        quota_(below.quota),
        sessions_(below.sessions),
        host_(below.host),
        leases_(below.leases),
        sharing_(below.sharing) {}

  void Acquire(Session* session, uint64_t client_id, const v1::Acquire& acquire,
               Turn& turn);
  void Cancel(Session* session, uint64_t client_id, Turn& turn);
  // Those of them that wait as hard ones may be soft ones by now. (A soft one
  // that cannot be is judged when it is granted.)
  void OnLendsAgain(const LendsAgain& lends, Turn& turn);
  // Likewise some of all that wait, where room in the host pool has come free.
  void SoftenSome(Turn& turn);
  // All that the session waits for is refused.
  void WithdrawAll(Session* session, const absl::Status& why, Turn& turn);
  // Nobody is there to be answered.
  void ForgetSession(const Session& session, Turn& turn);

  // --- Answers of the engine and the devices.
  void OnGranted(const quota::Granted& granted, Turn& turn);
  void OnDenied(const quota::Denied& denied, Turn& turn);
  void OnWaiting(const quota::Waiting& waiting, Turn& turn);
  void OnNotMade(const NotMade& failed, Turn& turn);
  // Those whose time has come.
  void AskPutOff(Turn& turn);

 private:
  // Puts a request to the engine.
  void Ask(const PendingAcquire& request, Turn& turn);
  // Answered by OnDenied, if nothing else has answered it.
  void Withdraw(quota::RequestId id, Turn& turn);
  // It is listed nowhere any more; it must be.
  PendingAcquire Forget(quota::RequestId id);
  // A keeper that is silent keeps what its slabs would be made of: it waits for
  // that one, as for memory.
  void PutOff(PendingAcquire request, Turn& turn);
  // Whether it is a soft one, as things stand; once that, it stays so until it
  // is granted.
  void Judge(PendingAcquire* request) const;
  // One that waits as a hard one waits on as a soft one, if it is that by now.
  // False: it is granted, and its room not yet reserved.
  [[nodiscard]] bool Soften(quota::RequestId id, Turn& turn);
  bool KeepsItsWord(const quota::Granted& granted, PendingAcquire* request,
                    Turn& turn);
  [[nodiscard]] bool IsSoftByNow(const quota::Denied& denied,
                                 const PendingAcquire& request) const;

  State& state_;
  QuotaDesk& quota_;
  SessionDesk& sessions_;
  HostDesk& host_;
  LeaseDesk& leases_;
  Sharing& sharing_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_REQUEST_DESK_H_
