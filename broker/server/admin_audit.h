#ifndef GMB_BROKER_SERVER_ADMIN_AUDIT_H_
#define GMB_BROKER_SERVER_ADMIN_AUDIT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/store/quota_store.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::broker {

// One page of what operators did. Waits for the disk.
[[nodiscard]] absl::StatusOr<v1::ListAuditResponse> AuditPage(
    QuotaStore* store, const v1::ListAuditRequest& request);

// Lists an attempt of an operator, if it was refused. Returns how it went.
absl::Status RecordIfRefused(QuotaStore* store, AuditRecord audit,
                             const std::string& action,
                             const std::string& subject,
                             const absl::Status& done);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_ADMIN_AUDIT_H_
