#ifndef GMB_BROKER_MACHINE_TENANT_FIT_H_
#define GMB_BROKER_MACHINE_TENANT_FIT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "broker/machine/file_change.h"
#include "broker/machine/pool.h"
#include "broker/machine/state.h"
#include "broker/machine/tenant.h"

// Whether tenants can be as somebody wants them, and what that would take.
namespace gmb::broker {

// As far as it does not depend on other tenants.
[[nodiscard]] absl::Status CheckAlone(const State& state,
                                      const TenantPolicy& policy);
// Whether their uids are nobody else's: each belongs to one tenant.
[[nodiscard]] absl::Status CheckUids(const State& state,
                                     const std::vector<TenantPolicy>& tenants);
// Whether all tenants fit together, these with these values. The error names
// the tenant if it is about one.
[[nodiscard]] absl::Status CheckAllFit(
    const State& state, const std::vector<TenantPolicy>& tenants);

// The bytes of its leases, of sessions that have ended too.
[[nodiscard]] uint64_t LeasedBytes(const State& state, quota::TenantId tenant);
// The bytes that the policy would take from the tenant's processes in the pool.
[[nodiscard]] uint64_t TakesBytes(const State& state, const Tenant& known,
                                  const TenantPolicy& policy, const Pool& pool);
// Takes out of `tenants`, which are those of the change, what would take more
// than the change may. The one that takes least comes first, so that most of it
// holds.
[[nodiscard]] std::vector<HeldBack> HoldBack(
    const State& state, const FileChange& change,
    std::vector<TenantPolicy>* tenants);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_TENANT_FIT_H_
