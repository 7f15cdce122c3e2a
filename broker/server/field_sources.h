#ifndef GMB_BROKER_SERVER_FIELD_SOURCES_H_
#define GMB_BROKER_SERVER_FIELD_SOURCES_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "broker/declared/declared.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// Says in a report of a tenant who wrote its fields, and the revision.
void AddSources(const Declared& declared, v1::Tenant* tenant);

// The fields that the change names, as they are declared. `device`: the UUID
// that its device resolves to; empty: of every device.
[[nodiscard]] std::set<std::string> FieldsNamed(
    const v1::SetTenantRequest& request, const std::string& device,
    const Subject& subject);
// The same of a request to give fields back. BAD_REQUEST: one of them is none.
[[nodiscard]] absl::StatusOr<std::set<std::string>> FieldsNamed(
    const v1::ResetTenantRequest& request, const std::string& device,
    const Subject& subject);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_FIELD_SOURCES_H_
