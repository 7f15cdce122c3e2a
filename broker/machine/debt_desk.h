#ifndef GMB_BROKER_MACHINE_DEBT_DESK_H_
#define GMB_BROKER_MACHINE_DEBT_DESK_H_

#include "broker/machine/host_desk.h"
#include "broker/machine/index_keeper.h"
#include "broker/machine/lease.h"
#include "broker/machine/owed_answers.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "quota/units.h"

namespace gmb::broker {

// Answers that clients owe: a tenant that owes one gets no new soft credit.
class DebtDesk {
 public:
  struct Below {
    IndexKeeper& index;
    HostDesk& host;
  };
  DebtDesk(State& state, const Below& below)
      : state_(state), index_(below.index), host_(below.host) {}

  // The session has not answered for the lease in time.
  void Add(const Lease& lease, const Session& session);
  // Answers that have come, or that nobody will give any more.
  void ForgetPaid(Turn& turn);

 private:
  void ForgetOne(const OwedAnswers::Key& key, Turn& turn);
  void SoftenAll(quota::TenantId tenant, Turn& turn);

  State& state_;
  IndexKeeper& index_;
  HostDesk& host_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_DEBT_DESK_H_
