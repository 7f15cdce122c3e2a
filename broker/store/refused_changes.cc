// Operators' changes that were refused, and may be on the disk all the same.
#include "broker/store/refused_changes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "broker/declared/changes.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

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

}  // namespace

void RefusedChanges::AddChange(const AuditRecord& audit, const Declared& wanted,
                               const Declared& in_force) {
  change_ = Doubtful{.audit = audit,
                     .wanted = wanted,
                     .taken_back = Undone(audit, wanted, in_force)};
}

void RefusedChanges::Accept(const Declared& in_force) {
  if (change_.has_value() && change_->wanted == in_force) change_.reset();
}

absl::Status RefusedChanges::Settle(const Declared& in_force,
                                    StateOnDisk* disk) {
  absl::Status settled;
  if (change_.has_value()) settled = TakeBack(in_force, disk);
  if (settled.ok() && !records_.empty()) settled = TakeOutRecords(disk);
  return settled;
}

absl::Status RefusedChanges::TakeBack(const Declared& in_force,
                                      StateOnDisk* disk) {
  GMB_ASSIGN_OR_RETURN(const bool was_there,
                       disk->Has(change_->audit, change_->wanted));
  GMB_ASSIGN_OR_RETURN(const bool was_taken_back,
                       disk->HasRecord(change_->taken_back));
  if (was_there && !was_taken_back) {
    change_->taken_back.at = absl::Now();
    GMB_RETURN_IF_ERROR(disk->Write(in_force, &change_->taken_back));
    LogEvent(LogLevel::kWarning, "state_taken_back",
             {{"action", change_->audit.action},
              {"subject", change_->audit.subject},
              {"operator", change_->audit.operator_name},
              {"message", change_->taken_back.detail}});
  }
  change_.reset();
  return absl::OkStatus();
}

absl::Status RefusedChanges::TakeOutRecords(StateOnDisk* disk) {
  GMB_RETURN_IF_ERROR(disk->TakeOutRecords(records_));
  records_.clear();
  return absl::OkStatus();
}

bool RefusedChanges::Has(const AuditRecord& record) const {
  const auto is_it = [&record](const AuditRecord& refused) {
    return refused.id == record.id && refused.at == record.at &&
           refused.action == record.action;
  };
  return (change_.has_value() && is_it(change_->audit)) ||
         std::any_of(records_.begin(), records_.end(), is_it);
}

}  // namespace gmb::broker
