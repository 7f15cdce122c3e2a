#ifndef GMB_BROKER_SERVER_ADMIN_APPLY_H_
#define GMB_BROKER_SERVER_ADMIN_APPLY_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/core.h"
#include "broker/server/admin_departures.h"
#include "broker/server/overrides.h"
#include "broker/server/tenant_doors.h"
#include "broker/server/waiting_guarantees.h"
#include "broker/store/quota_store.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// Reads the YAML of an apply; `name` is said in errors.
using ReadTenants = std::function<absl::StatusOr<std::vector<TenantPolicy>>(
    const std::string& yaml, const std::string& name)>;

// Operators declare tenants in files, on the operators' thread: all of a file is
// checked before any of it is made.
class AdminApply {
 public:
  // All of them must outlive it.
  AdminApply(Core* core, QuotaStore* store, const TenantDoors* doors,
             WaitingGuarantees* waiting, Overrides* overrides,
             AdminDepartures* departures, ReadTenants read)
      : core_(core),
        store_(store),
        doors_(doors),
        waiting_(waiting),
        overrides_(overrides),
        departures_(departures),
        read_(std::move(read)) {}

  absl::Status Apply(AuditRecord audit, const v1::ApplyRequest& request,
                     v1::ApplyResponse* response);

 private:
  // Its outcome.
  struct Plan;

  absl::StatusOr<std::vector<TenantPolicy>> TenantsIn(
      const v1::ApplyRequest& request) const;
  absl::StatusOr<Plan> MakePlan(const v1::ApplyRequest& request,
                                const Source& source, absl::Time at) const;
  absl::Status Carry(const AuditRecord& audit, const Plan& plan);
  void Fill(const Plan& plan, v1::ApplyResponse* response) const;

  Core* const core_;
  QuotaStore* const store_;
  const TenantDoors* const doors_;
  WaitingGuarantees* const waiting_;
  Overrides* const overrides_;
  AdminDepartures* const departures_;
  const ReadTenants read_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ADMIN_APPLY_H_
