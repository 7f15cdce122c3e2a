#include "broker/store/schema.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace gmb::broker {
namespace {

constexpr int64_t kApplicationId = 0x676d6271;  // "gmbq"
constexpr int64_t kVersion = 1;

// An amount is bytes or a fraction: the other column is null. A tenant that an
// operator deleted keeps a row, so that a config file does not bring it back.
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

absl::Status CreateTables(Database* database) {
  absl::StatusOr<Transaction> transaction = Transaction::Begin(database);
  if (!transaction.ok()) return transaction.status();
  absl::Status made = database->Execute(kTables);
  if (!made.ok()) return made;
  const std::string marks =
      absl::StrCat("PRAGMA application_id=", kApplicationId,
                   "; PRAGMA user_version=", kVersion);
  made = database->Execute(marks.c_str());
  if (!made.ok()) return made;
  return transaction->Commit();
}

}  // namespace

absl::Status PrepareSchema(Database* database) {
  // Every commit is on the disk when it returns. A rollback journal, not a
  // write-ahead log: writes are rare, and it needs no shared memory file.
  absl::Status set = database->Execute(
      "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA; PRAGMA "
      "foreign_keys=ON");
  if (!set.ok()) return set;
  const absl::StatusOr<std::string> integrity =
      database->QueryText("PRAGMA integrity_check(1)");
  if (!integrity.ok()) return integrity.status();
  if (*integrity != "ok") {
    return absl::DataLossError(
        absl::StrCat("the state database is damaged: ", *integrity));
  }
  const absl::StatusOr<int64_t> tables =
      database->QueryInt("SELECT COUNT(*) FROM sqlite_schema");
  if (!tables.ok()) return tables.status();
  const absl::StatusOr<int64_t> application =
      database->QueryInt("PRAGMA application_id");
  if (!application.ok()) return application.status();
  if (*tables == 0 && *application == 0) return CreateTables(database);
  if (*application != kApplicationId)
    return absl::DataLossError("the state database is not one of gmbd");
  const absl::StatusOr<int64_t> version =
      database->QueryInt("PRAGMA user_version");
  if (!version.ok()) return version.status();
  if (*version != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the state database was written by another version of "
                     "gmbd: use that version, or another state "
                     "directory: its format is ",
                     *version, ", this one reads ", kVersion));
  }
  return absl::OkStatus();
}

}  // namespace gmb::broker
