// Each act of operators is written before it is done, and listed.
#include "base/status_macros.h"
#include "broker/store/not_written.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

absl::Status QuotaStore::Audit(const AuditRecord& record,
                               absl::FunctionRef<absl::Status()> act,
                               OnBadDisk on_bad_disk) {
  AuditRecord written = record;
  absl::Status done = WriteAudit(&written);
  const bool is_written = done.ok();
  if (!is_written) LogNotWritten(record, done);
  if (is_written || on_bad_disk == OnBadDisk::kActAnyway) done = act();
  if (!done.ok() && written.id != 0) TakeOut(written);
  return done;
}

absl::Status QuotaStore::WriteAudit(AuditRecord* record) {
  base::MutexLock lock(&mu_);
  GMB_RETURN_IF_ERROR(Settle());
  absl::Status done;
  {
    GMB_ASSIGN_OR_RETURN(Transaction transaction,
                         Transaction::Begin(&database_));
    done = AddAudit(record, &database_);
    if (done.ok()) done = transaction.Commit();
  }
  if (done.ok()) return done;
  // As of a change: all may be on the disk.
  const absl::StatusOr<bool> is_there = HasAudit(*record, &database_);
  if (is_there.ok() && *is_there) return absl::OkStatus();
  if (is_there.ok()) record->id = 0;
  return done;
}

void QuotaStore::TakeOut(const AuditRecord& record) {
  base::MutexLock lock(&mu_);
  untrue_.push_back(record);
  Settle().IgnoreError();
}

absl::StatusOr<std::vector<AuditRecord>> QuotaStore::ListAudit(
    uint32_t limit, int64_t before, const AuditFilter& filter) {
  base::MutexLock lock(&mu_);
  Settle().IgnoreError();
  absl::StatusOr<std::vector<AuditRecord>> records =
      broker::ListAudit(limit, before, filter, &database_);
  if (!records.ok()) return records;
  for (AuditRecord& record : *records) {
    if (IsRefused(record)) record.action += "_refused";
  }
  return records;
}

}  // namespace gmb::broker
