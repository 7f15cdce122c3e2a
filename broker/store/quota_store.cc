// Operators' changes on the disk, each with its audit record.
#include "broker/store/quota_store.h"

#include <limits>
#include <memory>
#include <utility>

#include "broker/declared/changes.h"
#include "broker/declared/former.h"
#include "broker/declared/merge.h"
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

// An operator who looked before a change is to see that there was one. A deletion
// writes nothing that raises the number.
void Raise(const Declared& before, Declared* next) {
  if (next->next_order <= before.next_order && *next != before)
    next->next_order = before.next_order + 1;
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

// A commit may fail when all is on the disk: its last step is to make the
// removal of the journal last. Then the next start finds the change, so it is
// made now.
absl::Status QuotaStore::Commit(AuditRecord audit, Declared declared) {
  const std::shared_ptr<const Declared> before = declared_.Get();
  NoteFormer(*before, &declared);
  Raise(*before, &declared);
  absl::Status done = Settle();
  if (!done.ok()) {
    LogNotWritten(audit, done);
    return done;
  }
  done = disk_.Write(declared, &audit);
  if (!done.ok()) {
    LogNotWritten(audit, done);
    const absl::StatusOr<bool> is_there = disk_.Has(audit, declared);
    if (is_there.ok() && *is_there) {
      done = absl::OkStatus();
    } else if (!is_there.ok()) {
      refused_.AddChange(audit, declared, *before);
      in_doubt_ = true;
    }
  }
  if (done.ok()) declared_.Set(std::move(declared));
  return done;
}

absl::Status QuotaStore::Settle() {
  absl::Status settled = refused_.Settle(*declared_.Get(), &disk_);
  in_doubt_ = !refused_.empty();
  return settled;
}

void QuotaStore::SettleRefused() {
  if (!in_doubt_) return;
  base::MutexLock lock(&mu_);
  Settle().IgnoreError();
}

absl::StatusOr<StoredState> QuotaStore::Load() {
  base::MutexLock lock(&mu_);
  return InForce(*declared_.Get());
}

Declared QuotaStore::GetDeclared() {
  base::MutexLock lock(&mu_);
  return *declared_.Get();
}

absl::Status QuotaStore::PutDeclared(const Declared& declared,
                                     const AuditRecord& audit) {
  base::MutexLock lock(&mu_);
  return Commit(audit, declared);
}

void QuotaStore::HoldDeclared(const Declared& declared) {
  base::MutexLock lock(&mu_);
  Declared held = declared;
  const std::shared_ptr<const Declared> before = declared_.Get();
  NoteFormer(*before, &held);
  Raise(*before, &held);
  refused_.Accept(held);
  in_doubt_ = !refused_.empty();
  declared_.Set(std::move(held));
}

absl::Status QuotaStore::Change(AuditRecord audit,
                                absl::FunctionRef<void(Declared*)> change) {
  base::MutexLock lock(&mu_);
  const std::shared_ptr<const Declared> before = declared_.Get();
  Declared next = *before;
  change(&next);
  if (next == *before) return absl::OkStatus();
  if (audit.detail.empty()) audit.detail = ChangesText(*before, next);
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
  Declared next = *declared_.Get();
  Delete(std::string(name), &next);
  return Commit(audit, std::move(next));
}

absl::Status QuotaStore::PutPoolTarget(absl::string_view device,
                                       const quota::Amount& target,
                                       const AuditRecord& audit) {
  if (!Storable(target)) return TooLarge();
  base::MutexLock lock(&mu_);
  Declared next = *declared_.Get();
  WritePool(std::string(device), WriteAmount(target), OperatorOf(audit),
            audit.at, &next);
  return Commit(audit, std::move(next));
}

}  // namespace gmb::broker
