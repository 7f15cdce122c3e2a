// Operators' changes that were refused, and may be on the disk all the same.
#include <algorithm>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "broker/log/logging.h"
#include "broker/store/declared_rows.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

absl::Status QuotaStore::Settle() {
  absl::Status settled;
  if (doubtful_.has_value()) settled = TakeBack();
  if (settled.ok() && !untrue_.empty()) settled = TakeOutUntrue();
  NoteDoubt();
  return settled;
}

void QuotaStore::NoteDoubt() {
  in_doubt_ = doubtful_.has_value() || !untrue_.empty();
}

void QuotaStore::SettleRefused() {
  if (!in_doubt_) return;
  base::MutexLock lock(&mu_);
  Settle().IgnoreError();
}

absl::Status QuotaStore::TakeBack() {
  GMB_ASSIGN_OR_RETURN(const bool was_there,
                       IsOnDisk(doubtful_->audit, doubtful_->wanted));
  GMB_ASSIGN_OR_RETURN(const bool was_taken_back,
                       HasAudit(doubtful_->taken_back, &database_));
  if (was_there && !was_taken_back) {
    doubtful_->taken_back.at = absl::Now();
    if (absl::Status written = Write(declared_, &doubtful_->taken_back);
        !written.ok()) {
      on_disk_.reset();
      return written;
    }
    on_disk_ = declared_;
    LogEvent(LogLevel::kWarning, "state_taken_back",
             {{"action", doubtful_->audit.action},
              {"subject", doubtful_->audit.subject},
              {"operator", doubtful_->audit.operator_name},
              {"message", doubtful_->taken_back.detail}});
  }
  doubtful_.reset();
  return absl::OkStatus();
}

absl::Status QuotaStore::TakeOutUntrue() {
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  for (const AuditRecord& record : untrue_)
    GMB_RETURN_IF_ERROR(TakeOutAudit(record, &database_));
  GMB_RETURN_IF_ERROR(transaction.Commit());
  untrue_.clear();
  return absl::OkStatus();
}

bool QuotaStore::IsRefused(const AuditRecord& record) const {
  const auto is_it = [&record](const AuditRecord& refused) {
    return refused.id == record.id && refused.at == record.at &&
           refused.action == record.action;
  };
  return (doubtful_.has_value() && is_it(doubtful_->audit)) ||
         std::any_of(untrue_.begin(), untrue_.end(), is_it);
}

}  // namespace gmb::broker
