#ifndef GMB_BROKER_SERVER_ADMIN_TENANTS_H_
#define GMB_BROKER_SERVER_ADMIN_TENANTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/core.h"
#include "broker/declared/uids.h"
#include "broker/machine/tenant.h"
#include "broker/server/overrides.h"
#include "broker/server/tenant_doors.h"
#include "broker/server/waiting_guarantees.h"
#include "broker/store/quota_store.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// Whether what is declared fits together after a change of the tenant, which was
// `before`: at each end of values for a time, and with uids of one tenant each.
[[nodiscard]] absl::Status CheckDeclared(const std::string& tenant,
                                         const Declared& before,
                                         const Declared& next,
                                         const HeldUids& held);

// Operators make and change one tenant, on the operators' thread.
class AdminTenants {
 public:
  // All of them must outlive it.
  AdminTenants(Core* core, QuotaStore* store, const TenantDoors* doors,
               WaitingGuarantees* waiting, Overrides* overrides)
      : core_(core),
        store_(store),
        doors_(doors),
        waiting_(waiting),
        overrides_(overrides) {}

  absl::Status Set(AuditRecord audit, const v1::SetTenantRequest& request,
                   v1::SetTenantResponse* response);
  // Gives values back to the configuration file: admin_reset.cc.
  absl::Status Reset(AuditRecord audit, const v1::ResetTenantRequest& request,
                     v1::SetTenantResponse* response);

 private:
  // The tenant after a change. They differ where something declared is left out.
  struct Wanted {
    TenantPolicy declared;
    TenantPolicy in_force;
  };
  absl::StatusOr<Wanted> Merge(const v1::SetTenantRequest& request,
                               const absl::StatusOr<TenantPolicy>& known) const;
  absl::StatusOr<Wanted> Former(
      const v1::SetTenantRequest& request,
      const absl::StatusOr<TenantPolicy>& known) const;
  [[nodiscard]] absl::Status Check(const AuditRecord& audit,
                                   const Wanted& wanted,
                                   const v1::SetTenantRequest& request) const;
  absl::Status ShowPreview(const TenantPolicy& policy,
                           v1::SetTenantResponse* response) const;
  absl::Status FillTenant(const std::string& name,
                          v1::SetTenantResponse* response) const;
  absl::Status Carry(const AuditRecord& audit, const Wanted& wanted,
                     bool is_known, const v1::SetTenantRequest& request,
                     v1::SetTenantResponse* response);
  absl::Status Store(const AuditRecord& audit, const TenantPolicy& declared,
                     const v1::SetTenantRequest& request);
  absl::StatusOr<std::string> Resolve(const std::string& device) const;

  Core* const core_;
  QuotaStore* const store_;
  const TenantDoors* const doors_;
  WaitingGuarantees* const waiting_;
  Overrides* const overrides_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ADMIN_TENANTS_H_
