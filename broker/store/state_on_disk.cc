// The database: all that is declared and the audit log, written together.
#include "broker/store/state_on_disk.h"

#include "base/status_macros.h"
#include "broker/store/audit_rows.h"
#include "broker/store/declared_rows.h"

namespace gmb::broker {

absl::Status StateOnDisk::Write(const Declared& declared, AuditRecord* audit) {
  if (!declared_.has_value()) GMB_RETURN_IF_ERROR(ReadBack());
  absl::Status written = WriteOver(*declared_, declared, audit);
  if (written.ok()) {
    declared_ = declared;
  } else {
    declared_.reset();
  }
  return written;
}

absl::Status StateOnDisk::WriteOver(const Declared& before,
                                    const Declared& declared,
                                    AuditRecord* audit) {
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  GMB_RETURN_IF_ERROR(SaveDeclared(before, declared, &database_));
  if (!audit->action.empty()) {
    GMB_RETURN_IF_ERROR(AddAudit(audit, &database_));
  }
  return transaction.Commit();
}

// The record and the change are one transaction.
absl::StatusOr<bool> StateOnDisk::Has(const AuditRecord& audit,
                                      const Declared& declared) {
  GMB_RETURN_IF_ERROR(ReadBack());
  if (audit.action.empty()) return declared_ == declared;
  return HasRecord(audit);
}

absl::Status StateOnDisk::ReadBack() {
  declared_.reset();
  GMB_ASSIGN_OR_RETURN(declared_, LoadDeclared(&database_));
  return absl::OkStatus();
}

absl::Status StateOnDisk::WriteRecord(AuditRecord* record) {
  absl::Status done;
  {
    GMB_ASSIGN_OR_RETURN(Transaction transaction,
                         Transaction::Begin(&database_));
    done = AddAudit(record, &database_);
    if (done.ok()) done = transaction.Commit();
  }
  if (done.ok()) return done;
  // As of a change: all may be on the disk.
  const absl::StatusOr<bool> is_there = HasRecord(*record);
  if (is_there.ok() && *is_there) return absl::OkStatus();
  if (is_there.ok()) record->id = 0;
  return done;
}

absl::StatusOr<bool> StateOnDisk::HasRecord(const AuditRecord& record) {
  return HasAudit(record, &database_);
}

absl::Status StateOnDisk::TakeOutRecords(
    const std::vector<AuditRecord>& records) {
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  for (const AuditRecord& record : records)
    GMB_RETURN_IF_ERROR(TakeOutAudit(record, &database_));
  return transaction.Commit();
}

absl::StatusOr<std::vector<AuditRecord>> StateOnDisk::ListRecords(
    uint32_t limit, int64_t before, const AuditFilter& filter) {
  return ListAudit(limit, before, filter, &database_);
}

}  // namespace gmb::broker
