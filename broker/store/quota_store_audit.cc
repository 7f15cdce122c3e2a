// Each act of operators is written before it is done, and listed.
#include "broker/store/not_written.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

absl::Status QuotaStore::Audit(const AuditRecord& record,
                               absl::FunctionRef<absl::Status()> act,
                               OnBadDisk on_bad_disk) {
  AuditRecord written = record;
  absl::Status done;
  {
    base::MutexLock lock(&mu_);
    done = Settle();
    if (done.ok()) done = disk_.WriteRecord(&written);
  }
  const bool is_written = done.ok();
  if (!is_written) LogNotWritten(record, done);
  if (is_written || on_bad_disk == OnBadDisk::kActAnyway) done = act();
  if (!done.ok() && written.id != 0) {
    base::MutexLock lock(&mu_);
    refused_.AddRecord(written);
    Settle().IgnoreError();
  }
  return done;
}

absl::StatusOr<std::vector<AuditRecord>> QuotaStore::ListAudit(
    uint32_t limit, int64_t before, const AuditFilter& filter) {
  base::MutexLock lock(&mu_);
  Settle().IgnoreError();
  absl::StatusOr<std::vector<AuditRecord>> records =
      disk_.ListRecords(limit, before, filter);
  if (!records.ok()) return records;
  for (AuditRecord& record : *records) {
    if (refused_.Has(record)) record.action += "_refused";
  }
  return records;
}

}  // namespace gmb::broker
