// The broker's start: operators' changes, and what became of them.
#include "broker/daemon/store_setup.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "broker/daemon/file_state.h"
#include "broker/declared/changes.h"
#include "broker/declared/merge.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

absl::Status AuditStart(QuotaStore* store, const std::string& action,
                        const std::string& detail) {
  return store->Audit(RecordOfBroker(action, detail),
                      [] { return absl::OkStatus(); });
}

absl::StatusOr<std::unique_ptr<QuotaStore>> BeginAnew(
    const std::string& state_dir) {
  GMB_ASSIGN_OR_RETURN(const std::string aside,
                       QuotaStore::SetAside(state_dir, absl::Now()));
  LogEvent(LogLevel::kWarning, "state_set_aside",
           {{"path", aside},
            {"message",
             "the database was damaged; starting without operators' changes"}});
  GMB_ASSIGN_OR_RETURN(std::unique_ptr<QuotaStore> store,
                       QuotaStore::Open(state_dir));
  GMB_RETURN_IF_ERROR(AuditStart(store.get(), "fresh_state", aside));
  return store;
}

}  // namespace

AuditRecord RecordOfBroker(const std::string& action,
                           const std::string& detail) {
  AuditRecord record;
  record.at = absl::Now();
  record.operator_name =
      absl::StrCat("uid ", ::getuid(), ", pid ", ::getpid(), " (gmbd)");
  record.action = action;
  record.detail = detail;
  return record;
}

absl::Status CheckStoreIsThere(const std::string& state_dir) {
  const std::string path = state_dir + "/gmb.db";
  std::error_code unknown;
  const bool is_there = std::filesystem::exists(path, unknown) &&
                        std::filesystem::file_size(path, unknown) > 0;
  if (is_there || unknown) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "there is no database, and the keeper has sessions and leases of a "
      "broker that had one: path=",
      path,
      ": is this the state directory of that broker? Put its database back, or "
      "start once with --fresh-state, which goes on with the tenants that the "
      "file has, and ends the sessions of all others"));
}

absl::StatusOr<std::unique_ptr<QuotaStore>> OpenQuotaStore(
    const std::string& state_dir, bool fresh_state) {
  absl::StatusOr<std::unique_ptr<QuotaStore>> store =
      QuotaStore::Open(state_dir);
  if (absl::IsDataLoss(store.status()) && fresh_state)
    return BeginAnew(state_dir);
  if (!store.ok() || !(*store)->found_empty()) return store;
  // A start that failed before it wrote anything leaves such a file as well, so
  // it is no reason to refuse this one.
  LogEvent(LogLevel::kWarning, "state_empty",
           {{"path", state_dir + "/gmb.db"},
            {"message",
             "the database was empty; starting without operators' changes. If "
             "there were some, stop the broker and restore a backup"}});
  GMB_RETURN_IF_ERROR(AuditStart(store->get(), "empty_state", ""));
  return store;
}

Declared WithoutEnded(Declared stored) {
  (void)Expire(absl::Now(), &stored);
  return stored;
}

Declared StartingState(const Declared& before, const BrokerConfig& config,
                       const std::map<std::string, std::string>& uuids) {
  FileMerge merge = MergeFile(before, FileStateOf(config, uuids), absl::Now());
  for (const std::string& name : merge.leaving) Forget(name, &merge.next);
  return std::move(merge.next);
}

void StoreFile(const Declared& before, const Declared& after,
               QuotaStore* store) {
  if (after == before) return;
  // The first one changes nothing that anybody had.
  const std::string changes =
      before.file_applied ? ChangesText(before, after) : "";
  AuditRecord audit;
  if (!changes.empty()) {
    LogEvent(LogLevel::kInfo, "file_applied", {{"message", changes}});
    audit = RecordOfBroker("apply_file", changes);
  }
  // The log says so where it cannot be written.
  if (!store->PutDeclared(after, audit).ok()) store->HoldDeclared(after);
}

}  // namespace gmb::broker
