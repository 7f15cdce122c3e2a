#ifndef GMB_BROKER_MACHINE_DEBT_DESK_H_
#define GMB_BROKER_MACHINE_DEBT_DESK_H_

#include "broker/machine/host_desk.h"
#include "broker/machine/index_keeper.h"
#include "broker/machine/lease.h"
#include "broker/machine/owed_answers.h"
#include "broker/machine/quota_desk.h"
#include "broker/machine/session.h"
#include "broker/machine/session_desk.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "quota/units.h"

namespace gmb::broker {

// Answers that clients owe: a tenant that owes one gets no new soft credit.
class DebtDesk {
 public:
  struct Below {
    IndexKeeper& index;
    QuotaDesk& quota;
    SessionDesk& sessions;
    HostDesk& host;
  };
  DebtDesk(State& state, const Below& below)
      : state_(state),
        index_(below.index),
        quota_(below.quota),
        sessions_(below.sessions),
        host_(below.host) {}

  // The session has not answered for the lease in time.
  void Add(const Lease& lease, const Session& session);
  // Answers that have come, or that nobody will give any more.
  void ForgetPaid(Turn& turn);
  // A session's process was killed, or could not be.
  void OnKilled(const Kill& kill, const absl::Status& status, Turn& turn);

 private:
  void ForgetOne(const OwedAnswers::Key& key, Turn& turn);
  void SoftenAll(quota::TenantId tenant, Turn& turn);

  State& state_;
  IndexKeeper& index_;
  QuotaDesk& quota_;
  SessionDesk& sessions_;
  HostDesk& host_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_DEBT_DESK_H_
