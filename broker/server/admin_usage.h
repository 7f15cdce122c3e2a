#ifndef GMB_BROKER_SERVER_ADMIN_USAGE_H_
#define GMB_BROKER_SERVER_ADMIN_USAGE_H_

#include "absl/status/statusor.h"
#include "broker/usage/usage_ledger.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// One page of what tenants used. Waits for the disk. `usage` is null where
// nothing is recorded: BAD_STATE says so.
[[nodiscard]] absl::StatusOr<v1::ListUsageResponse> UsagePage(
    UsageLedger* usage, const v1::ListUsageRequest& request);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ADMIN_USAGE_H_
