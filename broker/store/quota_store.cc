// Operators' changes on the disk, each with its audit record.
#include "broker/store/quota_store.h"

#include <limits>
#include <utility>

#include "base/status_macros.h"
#include "broker/declared/changes.h"
#include "broker/declared/former.h"
#include "broker/declared/merge.h"
#include "broker/log/logging.h"
#include "broker/store/declared_rows.h"

namespace gmb::broker {
namespace {

// Amounts beyond 63 bits cannot be stored, and no pool is so large.
bool Storable(const quota::Amount& amount) {
  return amount.bytes() <=
         static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

bool Storable(const TenantPolicy& policy) {
  bool all = Storable(policy.reclaim.host_limit) &&
             Storable(policy.quota.guarantee) && Storable(policy.quota.limit);
  for (const auto& [device, quota] : policy.device_quotas)
    all = all && Storable(quota.guarantee) && Storable(quota.limit);
  return all;
}

Source OperatorOf(const AuditRecord& audit) {
  return {Source::Writer::kOperator, audit.operator_name};
}

// Refused changes are the operator's to see; that the disk refuses them is for
// all who look after the broker.
void LogNotWritten(const AuditRecord& record, const absl::Status& why) {
  LogEvent(LogLevel::kError, "state_not_written",
           {{"action", record.action},
            {"subject", record.subject},
            {"operator", record.operator_name},
            {"detail", record.detail},
            {"message", why.message()}});
}

absl::Status TooLarge() {
  return absl::InvalidArgumentError("an amount is above 2^63 - 1 bytes");
}

}  // namespace

StoredState InForce(const Declared& declared) {
  StoredState state;
  for (const auto& [name, subject] : declared.tenants) {
    if (subject.deleted) {
      state.deleted_tenants.push_back(name);
    } else {
      state.tenants.push_back(PolicyOf(name, InForce(subject)));
    }
  }
  for (const auto& [device, subject] : declared.pools) {
    const Written* const size = InForce(subject, kPoolSize);
    if (size == nullptr || size->source.writer == Source::Writer::kFile)
      continue;
    if (const auto amount = ReadAmount(size->value))
      state.pool_targets[device] = *amount;
  }
  return state;
}

absl::Status QuotaStore::Write(const AuditRecord& audit,
                               const Declared& declared) {
  if (!on_disk_.has_value()) GMB_RETURN_IF_ERROR(ReadBack());
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  GMB_RETURN_IF_ERROR(SaveDeclared(*on_disk_, declared, &database_));
  if (!audit.action.empty()) {
    GMB_RETURN_IF_ERROR(AddAudit(audit));
  }
  return transaction.Commit();
}

absl::Status QuotaStore::ReadBack() {
  on_disk_.reset();
  GMB_ASSIGN_OR_RETURN(on_disk_, LoadDeclared(&database_));
  return absl::OkStatus();
}

void QuotaStore::TakeBack() {
  if (on_disk_.has_value() || !ReadBack().ok() || on_disk_ == declared_) return;
  if (Write(AuditRecord(), declared_).ok()) {
    on_disk_ = declared_;
  } else {
    on_disk_.reset();
  }
}

// A commit may fail when all is on the disk: its last step is to make the
// removal of the journal last. Then the next start finds the change, so it is
// made now.
absl::Status QuotaStore::Commit(const AuditRecord& audit, Declared declared) {
  NoteFormer(declared_, &declared);
  const bool changes = on_disk_ != declared;
  absl::Status done = Write(audit, declared);
  if (!done.ok()) {
    LogNotWritten(audit, done);
    if (ReadBack().ok() && changes && on_disk_ == declared)
      done = absl::OkStatus();
  }
  if (done.ok()) {
    on_disk_ = declared;
    Take(declared);
  }
  return done;
}

absl::StatusOr<StoredState> QuotaStore::Load() {
  base::MutexLock lock(&mu_);
  return InForce(declared_);
}

Declared QuotaStore::GetDeclared() {
  base::MutexLock lock(&mu_);
  return declared_;
}

absl::Status QuotaStore::PutDeclared(const Declared& declared,
                                     const AuditRecord& audit) {
  base::MutexLock lock(&mu_);
  return Commit(audit, declared);
}

void QuotaStore::HoldDeclared(const Declared& declared) {
  base::MutexLock lock(&mu_);
  Declared held = declared;
  NoteFormer(declared_, &held);
  Take(held);
}

void QuotaStore::Take(const Declared& declared) {
  declared_ = declared;
  auto shown = std::make_shared<const Declared>(declared);
  base::MutexLock lock(&shown_mu_);
  shown_ = std::move(shown);
}

std::shared_ptr<const Declared> QuotaStore::Shown() const {
  base::MutexLock lock(&shown_mu_);
  return shown_;
}

absl::Status QuotaStore::Change(AuditRecord audit,
                                absl::FunctionRef<void(Declared*)> change) {
  base::MutexLock lock(&mu_);
  Declared next = declared_;
  change(&next);
  if (next == declared_) return absl::OkStatus();
  if (audit.detail.empty()) audit.detail = ChangesText(declared_, next);
  return Commit(audit, std::move(next));
}

absl::Status QuotaStore::PutTenant(const TenantPolicy& policy,
                                   const AuditRecord& audit,
                                   const std::set<std::string>& named) {
  if (!Storable(policy)) return TooLarge();
  return Change(audit, [&](Declared* next) {
    WriteFields(policy.name, FieldsOf(policy), OperatorOf(audit), audit.at,
                next, named);
  });
}

absl::Status QuotaStore::DeleteTenant(absl::string_view name,
                                      const AuditRecord& audit) {
  base::MutexLock lock(&mu_);
  Declared next = declared_;
  Delete(std::string(name), &next);
  return Commit(audit, std::move(next));
}

absl::Status QuotaStore::PutPoolTarget(absl::string_view device,
                                       const quota::Amount& target,
                                       const AuditRecord& audit) {
  if (!Storable(target)) return TooLarge();
  base::MutexLock lock(&mu_);
  Declared next = declared_;
  WritePool(std::string(device), WriteAmount(target), OperatorOf(audit),
            audit.at, &next);
  return Commit(audit, std::move(next));
}

absl::Status QuotaStore::Audit(const AuditRecord& record,
                               absl::FunctionRef<absl::Status()> act,
                               OnBadDisk on_bad_disk) {
  const absl::StatusOr<int64_t> id = WriteAudit(record);
  if (!id.ok()) {
    LogNotWritten(record, id.status());
    return on_bad_disk == OnBadDisk::kActAnyway ? act() : id.status();
  }
  absl::Status done = act();
  if (!done.ok()) TakeOutAudit(*id).IgnoreError();
  return done;
}

absl::StatusOr<int64_t> QuotaStore::WriteAudit(const AuditRecord& record) {
  base::MutexLock lock(&mu_);
  TakeBack();
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  absl::Status done = AddAudit(record);
  if (!done.ok()) return done;
  const absl::StatusOr<int64_t> id =
      database_.QueryInt("SELECT MAX(id) FROM audit");
  if (!id.ok()) return id;
  done = transaction.Commit();
  if (!done.ok()) return done;
  return id;
}

// Its number is used again, so that what is refused does not shorten the list,
// which is kept by numbers.
absl::Status QuotaStore::TakeOutAudit(int64_t id) {
  base::MutexLock lock(&mu_);
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  Statement take_out(&database_, "DELETE FROM audit WHERE id = ?");
  absl::Status done = take_out.Bind(id).Run();
  if (!done.ok()) return done;
  done = database_.Execute(
      "UPDATE sqlite_sequence SET seq = (SELECT IFNULL(MAX(id), 0) FROM audit) "
      "WHERE name = 'audit'");
  if (!done.ok()) return done;
  return transaction.Commit();
}

absl::Status QuotaStore::AddAudit(const AuditRecord& record) {
  Statement add(&database_,
                "INSERT INTO audit(at_ns, operator_name, action, subject, "
                "detail) VALUES(?,?,?,?,?)");
  add.Bind(absl::ToUnixNanos(record.at))
      .Bind(record.operator_name)
      .Bind(record.action)
      .Bind(record.subject)
      .Bind(record.detail);
  GMB_RETURN_IF_ERROR(add.Run());
  Statement forget(
      &database_,
      "DELETE FROM audit WHERE id <= (SELECT MAX(id) FROM audit) - ?");
  return forget.Bind(kKeptAuditRecords).Run();
}

absl::StatusOr<std::vector<AuditRecord>> QuotaStore::ListAudit(
    uint32_t limit, int64_t before, const AuditFilter& filter) {
  base::MutexLock lock(&mu_);
  TakeBack();
  Statement list(&database_,
                 "SELECT at_ns, operator_name, action, subject, detail, id "
                 "FROM audit WHERE id < ?1 AND at_ns >= ?2 AND (?3 = '' OR "
                 "subject = ?3 OR (action IN ('apply', 'apply_file', "
                 "'override_ended') AND (instr('; ' || detail, '; ' || ?3 || "
                 "': ') OR instr('; ' || detail, '; tenant ' || ?3 || ' is ')))"
                 ") ORDER BY id DESC LIMIT ?4");
  list.Bind(before > 0 ? before : std::numeric_limits<int64_t>::max())
      .Bind(absl::ToUnixNanos(filter.since))
      .Bind(filter.subject)
      .Bind(static_cast<int64_t>(limit));
  std::vector<AuditRecord> records;
  for (;;) {
    GMB_ASSIGN_OR_RETURN(const bool row, list.Step());
    if (!row) return records;
    records.push_back({.at = absl::FromUnixNanos(list.Int(0)),
                       .operator_name = list.Text(1),
                       .action = list.Text(2),
                       .subject = list.Text(3),
                       .detail = list.Text(4),
                       .id = list.Int(5)});
  }
}

}  // namespace gmb::broker
