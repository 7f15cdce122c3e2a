#ifndef GMB_BROKER_MACHINE_LEASE_DESK_H_
#define GMB_BROKER_MACHINE_LEASE_DESK_H_

#include <vector>

#include "broker/machine/fact.h"
#include "broker/machine/host_desk.h"
#include "broker/machine/index_keeper.h"
#include "broker/machine/lease.h"
#include "broker/machine/lease_mover.h"
#include "broker/machine/pool_keeper.h"
#include "broker/machine/quota_desk.h"
#include "broker/machine/records.h"
#include "broker/machine/session_desk.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "gmb/v1/session.pb.h"
#include "quota/effect.h"
#include "quota/units.h"

namespace gmb::broker {

// Leases, from their grant to their end: made, written to the journal,
// announced, ended.
class LeaseDesk {
 public:
  struct Below {
    IndexKeeper& index;
    QuotaDesk& quota;
    SessionDesk& sessions;
    PoolKeeper& pools;
    HostDesk& host;
    LeaseMover& mover;
  };
  LeaseDesk(State& state, const Below& below)
      : state_(state),
        index_(below.index),
        quota_(below.quota),
        sessions_(below.sessions),
        pools_(below.pools),
        host_(below.host),
        mover_(below.mover) {}

  void Make(const quota::Granted& granted, const PendingAcquire& request,
            Turn& turn);
  // One that another broker has granted; the engine has it by now.
  Lease* Adopt(const LeaseRecord& record, quota::TenantId tenant,
               quota::RequestId request, std::vector<Slab> slabs, Turn& turn);
  // The slabs of a lease that is new, or has ended meanwhile.
  void OnPrepared(Lease* lease, const SlabsMade& made, Turn& turn);
  void MarkMapped(Session* session, const v1::Mapped& mapped);
  // Of a lease that is being made: its client has withdrawn the request. It is
  // answered with the grant, or as withdrawn if that fails.
  void Cancel(const PendingAnswer& asked) const;
  // Ends it, or as soon as the device and the copier are through with it.
  // `reuse`: its slabs are kept for its tenant.
  void EndLease(quota::LeaseId id, bool reuse, Turn& turn);

 private:
  void Announce(Lease* lease, Turn& turn);
  void OnPrepareFailed(Lease* lease, const SlabsMade& made, Turn& turn);
  void AbandonLease(Lease* lease, const SlabsMade& made, Turn& turn);

  State& state_;
  IndexKeeper& index_;
  QuotaDesk& quota_;
  SessionDesk& sessions_;
  PoolKeeper& pools_;
  HostDesk& host_;
  LeaseMover& mover_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_LEASE_DESK_H_
