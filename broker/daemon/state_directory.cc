// The broker's start and its drain, on the disk.
#include "broker/daemon/state_directory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/daemon/store_setup.h"
#include "broker/log/logging.h"
#include "broker/make_directories.h"

namespace gmb::broker {

absl::Status StateDirectory::Lock() {
  GMB_RETURN_IF_ERROR(MakeDirectories(config_.state_dir, 0700));
  absl::StatusOr<InstanceLock> lock = InstanceLock::Acquire(config_.state_dir);
  // The two directories may be one: then the lock is held already.
  if (lock.ok()) {
    lock_ = *std::move(lock);
  } else if (config_.state_dir != config_.socket_dir) {
    return lock.status();
  }
  return absl::OkStatus();
}

absl::Status StateDirectory::OpenStore(bool taken_over) {
  if (taken_over && !config_.fresh_state)
    GMB_RETURN_IF_ERROR(CheckStoreIsThere(config_.state_dir));
  GMB_ASSIGN_OR_RETURN(store_,
                       OpenQuotaStore(config_.state_dir, config_.fresh_state));
  return absl::OkStatus();
}

void StateDirectory::RecordDrain(const std::string& sender) {
  LogEvent(LogLevel::kInfo, "drain",
           {{"message", absl::StrCat("asked for by ", sender)}});
  AuditRecord record = RecordOfBroker("drain", "");
  record.operator_name = sender;
  store_->Audit(record, [] { return absl::OkStatus(); }).IgnoreError();
}

}  // namespace gmb::broker
