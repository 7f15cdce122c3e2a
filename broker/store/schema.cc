// Operators' changes on the disk: the tables, checked and brought up to date.
#include "broker/store/schema.h"

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/store/format2.h"

namespace gmb::broker {
namespace {

constexpr int64_t kApplicationId = 0x676d6271;  // "gmbq"

// Format 1. An amount is bytes or a fraction: the other column is null. A
// tenant that an operator deleted keeps a row, so that a config file does not
// bring it back.
constexpr char kTables[] = R"sql(
  CREATE TABLE tenants(
    name TEXT PRIMARY KEY NOT NULL,
    deleted INTEGER NOT NULL,
    max_handles INTEGER NOT NULL,
    max_sessions INTEGER NOT NULL) STRICT;
  CREATE TABLE quotas(
    tenant TEXT NOT NULL REFERENCES tenants(name) ON DELETE CASCADE,
    device TEXT NOT NULL,  -- UUID; empty: every device
    guarantee_bytes INTEGER, guarantee_fraction REAL,
    limit_bytes INTEGER, limit_fraction REAL,
    weight REAL NOT NULL,
    PRIMARY KEY(tenant, device)) STRICT;
  CREATE TABLE uids(
    tenant TEXT NOT NULL REFERENCES tenants(name) ON DELETE CASCADE,
    uid INTEGER NOT NULL,
    PRIMARY KEY(tenant, uid)) STRICT;
  CREATE TABLE pools(
    device TEXT PRIMARY KEY NOT NULL,
    target_bytes INTEGER, target_fraction REAL) STRICT;
  CREATE TABLE audit(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ns INTEGER NOT NULL,
    operator_name TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL) STRICT;
)sql";

// Format 2: what may be done to a tenant's memory when others need it. Tenants
// of format 1 get what a new tenant has (ReclaimPolicy).
constexpr char kReclaimColumns[] = R"sql(
  ALTER TABLE tenants ADD COLUMN may_terminate INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tenants ADD COLUMN min_residency_ns INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tenants ADD COLUMN
    pause_grace_ns INTEGER NOT NULL DEFAULT 5000000000;
  ALTER TABLE tenants ADD COLUMN host_limit_bytes INTEGER;
  ALTER TABLE tenants ADD COLUMN host_limit_fraction REAL DEFAULT 1.0;
)sql";

absl::Status MakeTables(Database* database) {
  return database->Execute(kTables);
}
absl::Status AddReclaimColumns(Database* database) {
  return database->Execute(kReclaimColumns);
}

// The step at index i leads from format i to format i + 1; an empty database
// takes all of them, so that old and new ones are alike. Format 3 keeps fields
// with their sources in place of whole tenants.
constexpr std::array<absl::Status (*)(Database*), 3> kSteps = {
    MakeTables, AddReclaimColumns, MoveToFormat3};
constexpr int64_t kVersion = kSteps.size();

absl::Status Upgrade(Database* database, int64_t version) {
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  for (int64_t step = version; step < kVersion; ++step) {
    GMB_RETURN_IF_ERROR(kSteps[static_cast<size_t>(step)](database));
  }
  const std::string marks =
      absl::StrCat("PRAGMA application_id=", kApplicationId,
                   "; PRAGMA user_version=", kVersion);
  GMB_RETURN_IF_ERROR(database->Execute(marks.c_str()));
  return transaction.Commit();
}

}  // namespace

absl::Status PrepareSchema(Database* database) {
  // Every commit is on the disk when it returns. A rollback journal, not a
  // write-ahead log: writes are rare, and it needs no shared memory file.
  absl::Status set = database->Execute(
      "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA; PRAGMA "
      "foreign_keys=ON");
  if (!set.ok()) return set;
  GMB_ASSIGN_OR_RETURN(const std::string integrity,
                       database->QueryText("PRAGMA integrity_check(1)"));
  if (integrity != "ok") {
    return absl::DataLossError(
        absl::StrCat("the state database is damaged: ", integrity));
  }
  GMB_ASSIGN_OR_RETURN(
      const int64_t tables,
      database->QueryInt("SELECT COUNT(*) FROM sqlite_schema"));
  GMB_ASSIGN_OR_RETURN(const int64_t application,
                       database->QueryInt("PRAGMA application_id"));
  if (tables == 0 && application == 0) return Upgrade(database, 0);
  if (application != kApplicationId)
    return absl::DataLossError("the state database is not one of gmbd");
  GMB_ASSIGN_OR_RETURN(const int64_t version,
                       database->QueryInt("PRAGMA user_version"));
  if (version < 1 || version > kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the state database was written by another version of "
                     "gmbd: use that version, or another state "
                     "directory: its format is ",
                     version, ", this one reads 1 to ", kVersion));
  }
  return version == kVersion ? absl::OkStatus() : Upgrade(database, version);
}

}  // namespace gmb::broker
