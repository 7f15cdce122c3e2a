#ifndef GMB_BROKER_MACHINE_REFUSALS_H_
#define GMB_BROKER_MACHINE_REFUSALS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "broker/machine/state.h"
#include "quota/amount.h"
#include "quota/effect.h"
#include "quota/tenant_quota.h"

// The refusals of the core in words: each says what is wrong and what to do.
namespace gmb::broker {

[[nodiscard]] absl::Status NoSuchTenant(absl::string_view name);
[[nodiscard]] absl::Status NoSuchDevice(absl::string_view device);
[[nodiscard]] absl::Status NoSuchLease(uint64_t lease);
// Of a shared lease.
[[nodiscard]] absl::Status NoSuchName(absl::string_view name);
// Of an exported one.
[[nodiscard]] absl::Status NotExported();

// To operators, of what could not be carried out any more.
[[nodiscard]] absl::Status Stopping();

// To sessions of a tenant that is being deleted.
[[nodiscard]] absl::Status Leaving(absl::string_view name);
// The same, if the tenant is; else OK.
[[nodiscard]] absl::Status CheckStays(const State& state,
                                      quota::TenantId tenant);

[[nodiscard]] absl::Status TooManyRequests(uint64_t max);

// Why the engine denied an Acquire of `bytes`.
[[nodiscard]] absl::Status DenialStatus(const quota::Denied& denied,
                                        uint64_t bytes);
// The same of one that would be served with the session's gate on.
[[nodiscard]] absl::Status GateFirst(const quota::Denied& denied,
                                     uint64_t bytes);
// The same of a tenant whose processes do not answer.
[[nodiscard]] absl::Status AnswersFirst(const quota::Denied& denied,
                                        uint64_t bytes);
// To a Restore, or an Attach, whose lease could not be filled or mapped.
[[nodiscard]] absl::Status NotBroughtBack(const absl::Status& why);
// To an operator who deletes a tenant whose sessions have ended, while what
// they had is still being copied, or made.
[[nodiscard]] absl::Status StillLeased(absl::string_view tenant,
                                       uint64_t bytes);
// To an operator who wants an amount that is less than one granule.
[[nodiscard]] absl::Status ComesToNothing(absl::string_view field,
                                          const quota::Amount& amount,
                                          uint64_t granule_bytes);
// To an operator who gives a uid to a second tenant.
[[nodiscard]] absl::Status UidOfAnother(uint32_t uid, absl::string_view owner);
// Why the engine refuses an operator's change.
[[nodiscard]] absl::Status RefusalStatus(const quota::Refusal& refusal,
                                         absl::string_view device);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_REFUSALS_H_
