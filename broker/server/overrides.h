#ifndef GMB_BROKER_SERVER_OVERRIDES_H_
#define GMB_BROKER_SERVER_OVERRIDES_H_

#include <set>
#include <string>

#include "broker/core/core.h"
#include "broker/core/wall_timer.h"
#include "broker/server/admin_calls.h"
#include "broker/server/not_in_force.h"
#include "broker/server/waiting_guarantees.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

// The values that operators set for a time: gives them back when it is over.
// The operators' thread's.
class Overrides {
 public:
  // All of them must outlive it.
  Overrides(Core* core, QuotaStore* store, const Clock* clock,
            NotInForce* not_in_force, WaitingGuarantees* waiting,
            AdminCalls* calls);

  // Looks at them when the next one ends, of what is declared now.
  void Await(const Declared& declared);
  // It gives `calls` no more work when it returns.
  void Stop() { timer_.Stop(); }

 private:
  // Gives back what was set for a time that is over.
  void End();
  void FallBack(const std::set<std::string>& tenants, const Declared& declared);
  void FallBackAlone(TenantPolicy policy);

  Core* const core_;
  QuotaStore* const store_;
  const Clock* const clock_;
  NotInForce* const not_in_force_;
  WaitingGuarantees* const waiting_;
  WallTimer timer_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_OVERRIDES_H_
