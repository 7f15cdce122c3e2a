#ifndef GMB_BROKER_STORE_AUDIT_ROWS_H_
#define GMB_BROKER_STORE_AUDIT_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/store/audit_record.h"
#include "broker/store/database.h"

namespace gmb::broker {

inline constexpr int64_t kKeptAuditRecords = 100'000;

// Adds the record, gives it its id, and forgets the oldest ones. Within a
// transaction, as TakeOutAudit is.
[[nodiscard]] absl::Status AddAudit(AuditRecord* record, Database* database);
// Whether this very record is there. One without an id is not.
[[nodiscard]] absl::StatusOr<bool> HasAudit(const AuditRecord& record,
                                            Database* database);
// Nothing, where it is not there.
[[nodiscard]] absl::Status TakeOutAudit(const AuditRecord& record,
                                        Database* database);
// The newest first: at most `limit`, of those before that id; 0: of all.
[[nodiscard]] absl::StatusOr<std::vector<AuditRecord>> ListAudit(
    uint32_t limit, int64_t before, const AuditFilter& filter,
    Database* database);

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_AUDIT_ROWS_H_
