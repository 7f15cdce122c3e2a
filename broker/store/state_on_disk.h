#ifndef GMB_BROKER_STORE_STATE_ON_DISK_H_
#define GMB_BROKER_STORE_STATE_ON_DISK_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/declared/declared.h"
#include "broker/store/audit_record.h"
#include "broker/store/database.h"

namespace gmb::broker {

// The database: all that is declared, and the audit log. It knows what it has
// written last, and reads that back where a write has failed. Not thread-safe.
class StateOnDisk {
 public:
  // `declared`: as the database has it.
  StateOnDisk(Database database, Declared declared)
      : database_(std::move(database)), declared_(std::move(declared)) {}

  // Both in one transaction; a record without an action is not listed. After an
  // error the change is on the disk or not, and Has says which.
  absl::Status Write(const Declared& declared, AuditRecord* audit);
  [[nodiscard]] absl::StatusOr<bool> Has(const AuditRecord& audit,
                                         const Declared& declared);

  // Of the audit log alone. The record that is written has an id if it is, or
  // after an error may be, on the disk.
  absl::Status WriteRecord(AuditRecord* record);
  [[nodiscard]] absl::StatusOr<bool> HasRecord(const AuditRecord& record);
  absl::Status TakeOutRecords(const std::vector<AuditRecord>& records);
  // As QuotaStore::ListAudit.
  [[nodiscard]] absl::StatusOr<std::vector<AuditRecord>> ListRecords(
      uint32_t limit, int64_t before, const AuditFilter& filter);

 private:
  absl::Status ReadBack();
  absl::Status WriteOver(const Declared& before, const Declared& declared,
                         AuditRecord* audit);

  Database database_;
  // None: a write has failed, and it could not be read since.
  std::optional<Declared> declared_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_STATE_ON_DISK_H_
