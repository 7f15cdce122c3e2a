#ifndef GMB_BROKER_SERVER_ADMIN_DEPARTURES_H_
#define GMB_BROKER_SERVER_ADMIN_DEPARTURES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "broker/core/core.h"
#include "broker/server/admin_calls.h"
#include "broker/server/tenant_doors.h"
#include "broker/server/waiting_guarantees.h"
#include "broker/store/quota_store.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// Operators delete tenants, on the operators' thread.
class AdminDepartures {
 public:
  // All of them must outlive it.
  AdminDepartures(Core* core, QuotaStore* store, const TenantDoors* doors,
                  WaitingGuarantees* waiting, AdminCalls* calls)
      : core_(core),
        store_(store),
        doors_(doors),
        waiting_(waiting),
        calls_(calls) {}

  // At once: BAD_STATE while it has sessions.
  absl::Status Delete(AuditRecord audit, const std::string& name,
                      uint64_t if_revision = 0);
  // Finishes the call when its sessions have ended and it is deleted, or stays
  // after all.
  void SeeOff(const Caller& caller, const v1::DeleteTenantRequest& request,
              const AdminCalls::Finish& finish);

 private:
  absl::Status EndSeeOff(const Caller& caller, const std::string& name,
                         quota::TenantId tenant, const absl::Status& gone);

  Core* const core_;
  QuotaStore* const store_;
  const TenantDoors* const doors_;
  WaitingGuarantees* const waiting_;
  AdminCalls* const calls_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ADMIN_DEPARTURES_H_
