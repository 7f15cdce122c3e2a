#ifndef GMB_BROKER_SERVER_ADMIN_POOLS_H_
#define GMB_BROKER_SERVER_ADMIN_POOLS_H_

#include "absl/status/status.h"
#include "broker/core/core.h"
#include "broker/server/not_in_force.h"
#include "broker/store/quota_store.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// Operators change pools, on their thread.
class AdminPools {
 public:
  // All of them must outlive it.
  AdminPools(Core* core, QuotaStore* store, NotInForce* not_in_force)
      : core_(core), store_(store), not_in_force_(not_in_force) {}

  absl::Status Resize(AuditRecord audit, const v1::ResizePoolRequest& request,
                      v1::ResizePoolResponse* response);
  absl::Status Drain(AuditRecord audit, const v1::DrainPoolRequest& request,
                     v1::DrainPoolResponse* response);

 private:
  Core* const core_;
  QuotaStore* const store_;
  NotInForce* const not_in_force_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ADMIN_POOLS_H_
