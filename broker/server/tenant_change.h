#ifndef GMB_BROKER_SERVER_TENANT_CHANGE_H_
#define GMB_BROKER_SERVER_TENANT_CHANGE_H_

#include <string>

#include "absl/status/status.h"
#include "broker/machine/tenant.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// Whether each quantity that the request names is one. BAD_REQUEST names the
// field. Whether the quantities fit together, and into the pools, is the
// core's to say.
[[nodiscard]] absl::Status CheckQuantities(const v1::SetTenantRequest& request);

// Whether it names anything that is not to be named with undo.
[[nodiscard]] bool NamesMoreThanUndo(const v1::SetTenantRequest& request);

// Puts what the request names over `policy`; what it leaves out stays as it
// is, the quotas of single devices included. `device` is the UUID that the
// request's device resolves to, empty when it names none: the quota of every
// device is changed then.
void PutOver(const v1::SetTenantRequest& request, const std::string& device,
             TenantPolicy* policy);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_TENANT_CHANGE_H_
