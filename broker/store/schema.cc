// Operators' changes on the disk: the tables, checked and brought up to date.
#include "broker/store/schema.h"

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/store/declared_rows.h"
#include "broker/store/format2.h"

namespace gmb::broker {
namespace {

constexpr int64_t kApplicationId = 0x676d6271;  // "gmbq"

constexpr char kAuditTable[] = R"sql(
  CREATE TABLE audit(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ns INTEGER NOT NULL,
    operator_name TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL) STRICT;
)sql";

// Format 2, which format2.cc reads: what may be done to a tenant's memory when
// others need it. Tenants of format 1 get what a new tenant has (ReclaimPolicy).
constexpr char kReclaimColumns[] = R"sql(
  ALTER TABLE tenants ADD COLUMN may_terminate INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tenants ADD COLUMN min_residency_ns INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tenants ADD COLUMN
    pause_grace_ns INTEGER NOT NULL DEFAULT 5000000000;
  ALTER TABLE tenants ADD COLUMN host_limit_bytes INTEGER;
  ALTER TABLE tenants ADD COLUMN host_limit_fraction REAL DEFAULT 1.0;
)sql";

absl::Status AddReclaimColumns(Database* database) {
  return database->Execute(kReclaimColumns);
}

// The step at index i leads from format i + 1 to the next one. Format 3 keeps
// fields with their sources in place of whole tenants.
constexpr std::array<absl::Status (*)(Database*), 2> kSteps = {
    AddReclaimColumns, MoveToFormat3};
constexpr int64_t kVersion = kSteps.size() + 1;

// The tables of the latest format, in an empty database. None of the older ones
// is made on the way: what they leave takes room for good.
absl::Status MakeTables(Database* database) {
  GMB_RETURN_IF_ERROR(database->Execute(kAuditTable));
  GMB_RETURN_IF_ERROR(database->Execute(kDeclaredTables));
  return database->Execute(kFormerTable);
}

absl::Status Upgrade(Database* database, int64_t version) {
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  if (version == 0) {
    GMB_RETURN_IF_ERROR(MakeTables(database));
    version = kVersion;
  }
  for (; version < kVersion; ++version) {
    GMB_RETURN_IF_ERROR(kSteps[static_cast<size_t>(version) - 1](database));
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
  if (version < kVersion) GMB_RETURN_IF_ERROR(Upgrade(database, version));
  return database->Execute(kFormerTable);
}

}  // namespace gmb::broker
