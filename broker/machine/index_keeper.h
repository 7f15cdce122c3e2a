#ifndef GMB_BROKER_MACHINE_INDEX_KEEPER_H_
#define GMB_BROKER_MACHINE_INDEX_KEEPER_H_

#include <set>

#include "broker/machine/lease.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"
#include "quota/event.h"
#include "quota/units.h"

namespace gmb::broker {

// Keeps the ReclaimIndex true of every lease. Each owner says so here when it
// has changed what the index counts.
class IndexKeeper {
 public:
  explicit IndexKeeper(State& state) : state_(state) {}

  void Touch(Lease* lease);
  void TouchLeasesOf(const Session& session);
  // The lease, or the tenant, has ended.
  void Forget(Lease* lease);
  void ForgetTenant(quota::TenantId tenant);

  // Something has changed that could help a demand there.
  void MarkChanged(quota::PoolId pool, quota::TenantId tenant);
  void MarkChangedEverywhere();
  void MarkChangedEverywhere(quota::TenantId tenant);
  // By what the engine is about to be told.
  void MarkChangedBy(const quota::Event& event);

  // A standing demand sleeps until its tenant's figure grows, or if it has none
  // its pool's.
  void Sleep(quota::PoolId pool, quota::TenantId tenant);
  // Whether one that sleeps may be woken; asked once.
  [[nodiscard]] bool TakeWoken();
  // Leases that were overdue and have changed, or have ended; told once.
  [[nodiscard]] std::set<quota::LeaseId> TakeLate();

 private:
  State& state_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_INDEX_KEEPER_H_
