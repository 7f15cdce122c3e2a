// Operators' changes on the disk, each with its audit record.
#include "broker/store/quota_store.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/declared/changes.h"
#include "broker/declared/former.h"
#include "broker/declared/merge.h"
#include "broker/store/declared_rows.h"
#include "broker/store/not_written.h"

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

// The record of a change that was refused and is taken out of the disk again.
AuditRecord Undone(const AuditRecord& audit, const Declared& refused,
                   const Declared& in_force) {
  AuditRecord undone = audit;
  undone.id = 0;
  undone.operator_name = "gmbd";
  if (!audit.action.empty()) undone.action += "_taken_back";
  undone.detail = ChangesText(refused, in_force);
  absl::StrAppend(&undone.detail, undone.detail.empty() ? "" : "; ",
                  "it was asked for by ", audit.operator_name,
                  ", refused since the disk failed, and on the disk all the "
                  "same");
  return undone;
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

absl::Status QuotaStore::Write(const Declared& declared, AuditRecord* audit) {
  if (!on_disk_.has_value()) GMB_RETURN_IF_ERROR(ReadBack());
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  GMB_RETURN_IF_ERROR(SaveDeclared(*on_disk_, declared, &database_));
  if (!audit->action.empty()) {
    GMB_RETURN_IF_ERROR(AddAudit(audit, &database_));
  }
  return transaction.Commit();
}

// The record and the change are one transaction.
absl::StatusOr<bool> QuotaStore::IsOnDisk(const AuditRecord& audit,
                                          const Declared& declared) {
  GMB_RETURN_IF_ERROR(ReadBack());
  if (audit.action.empty()) return on_disk_ == declared;
  return HasAudit(audit, &database_);
}

absl::Status QuotaStore::ReadBack() {
  on_disk_.reset();
  GMB_ASSIGN_OR_RETURN(on_disk_, LoadDeclared(&database_));
  return absl::OkStatus();
}

// A commit may fail when all is on the disk: its last step is to make the
// removal of the journal last. Then the next start finds the change, so it is
// made now.
absl::Status QuotaStore::Commit(AuditRecord audit, Declared declared) {
  NoteFormer(declared_, &declared);
  absl::Status done = Settle();
  if (!done.ok()) {
    LogNotWritten(audit, done);
    return done;
  }
  done = Write(declared, &audit);
  if (!done.ok()) {
    LogNotWritten(audit, done);
    const absl::StatusOr<bool> is_there = IsOnDisk(audit, declared);
    if (is_there.ok() && *is_there) {
      done = absl::OkStatus();
    } else if (!is_there.ok()) {
      on_disk_.reset();
      doubtful_ = Doubtful{.audit = audit,
                           .wanted = declared,
                           .taken_back = Undone(audit, declared, declared_)};
      NoteDoubt();
    }
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
  // Then it is true.
  if (doubtful_.has_value() && doubtful_->wanted == held) doubtful_.reset();
  NoteDoubt();
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

}  // namespace gmb::broker
