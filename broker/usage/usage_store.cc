// Usage on the disk: rows of days, added to and read by pages.
#include "broker/usage/usage_store.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/store/database_file.h"

namespace gmb::broker {
namespace {

constexpr int64_t kApplicationId = 0x676d6275;  // "gmbu"
constexpr int64_t kVersion = 1;

constexpr char kTable[] = R"sql(
  CREATE TABLE usage(
    day INTEGER NOT NULL,  -- of UTC, since 1970-01-01
    tenant TEXT NOT NULL,
    device TEXT NOT NULL,  -- its UUID
    peak_bytes INTEGER NOT NULL,
    byte_seconds REAL NOT NULL,
    granted INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    evictions INTEGER NOT NULL,
    evicted_bytes INTEGER NOT NULL,
    restores INTEGER NOT NULL,
    restored_bytes INTEGER NOT NULL,
    PRIMARY KEY(day, tenant, device)) STRICT, WITHOUT ROWID;
)sql";

constexpr char kAdd[] = R"sql(
  INSERT INTO usage VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT(day, tenant, device) DO UPDATE SET
    peak_bytes = MAX(peak_bytes, excluded.peak_bytes),
    byte_seconds = byte_seconds + excluded.byte_seconds,
    granted = granted + excluded.granted,
    refused = refused + excluded.refused,
    evictions = evictions + excluded.evictions,
    evicted_bytes = evicted_bytes + excluded.evicted_bytes,
    restores = restores + excluded.restores,
    restored_bytes = restored_bytes + excluded.restored_bytes;
)sql";

// The order of UsageKey; the first five values are the filter and the key.
constexpr char kList[] = R"sql(
  SELECT day, tenant, device, peak_bytes, byte_seconds, granted, refused,
         evictions, evicted_bytes, restores, restored_bytes
  FROM usage
  WHERE day >= ?1 AND (?2 = '' OR tenant = ?2) AND
        (day < ?3 OR (day = ?3 AND (tenant, device) > (?4, ?5)))
  ORDER BY day DESC, tenant, device LIMIT ?6;
)sql";

absl::Status MakeTables(Database* database) {
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  GMB_RETURN_IF_ERROR(database->Execute(kTable));
  GMB_RETURN_IF_ERROR(
      database->Execute(absl::StrCat("PRAGMA application_id=", kApplicationId,
                                     "; PRAGMA user_version=", kVersion)
                            .c_str()));
  return transaction.Commit();
}

absl::Status Prepare(Database* database) {
  GMB_RETURN_IF_ERROR(
      database->Execute("PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL"));
  GMB_ASSIGN_OR_RETURN(const std::string integrity,
                       database->QueryText("PRAGMA quick_check(1)"));
  if (integrity != "ok") return absl::DataLossError(integrity);
  GMB_ASSIGN_OR_RETURN(const int64_t application,
                       database->QueryInt("PRAGMA application_id"));
  GMB_ASSIGN_OR_RETURN(const int64_t version,
                       database->QueryInt("PRAGMA user_version"));
  GMB_ASSIGN_OR_RETURN(
      const int64_t tables,
      database->QueryInt("SELECT COUNT(*) FROM sqlite_schema"));
  if (tables == 0 && application == 0) return MakeTables(database);
  if (application != kApplicationId)
    return absl::DataLossError("it is not one of gmbd");
  if (version != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("usage.db was written by another version of gmbd (format ",
                     version, ", this one has ", kVersion,
                     "): usage is not recorded until it is moved elsewhere"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Database> OpenReady(const std::string& path) {
  GMB_RETURN_IF_ERROR(MakeDatabaseFile(path));
  GMB_ASSIGN_OR_RETURN(Database database, Database::Open(path));
  GMB_RETURN_IF_ERROR(Prepare(&database));
  return database;
}

int64_t Signed(uint64_t number) { return static_cast<int64_t>(number); }
uint64_t Unsigned(int64_t number) { return static_cast<uint64_t>(number); }

}  // namespace

absl::StatusOr<std::unique_ptr<UsageStore>> UsageStore::Open(
    const std::string& directory, absl::Time now, std::string* aside) {
  return Open(directory, now, aside, Kept());
}

absl::StatusOr<std::unique_ptr<UsageStore>> UsageStore::Open(
    const std::string& directory, absl::Time now, std::string* aside,
    const Kept& kept) {
  const std::string path = directory + "/usage.db";
  absl::StatusOr<Database> database = OpenReady(path);
  if (absl::IsDataLoss(database.status())) {
    GMB_ASSIGN_OR_RETURN(*aside, SetDatabaseAside(path, now));
    database = OpenReady(path);
  }
  if (!database.ok()) return database.status();
  return std::unique_ptr<UsageStore>(
      new UsageStore(*std::move(database), kept));
}

absl::Status UsageStore::Add(const UsageRows& rows) {
  if (rows.empty()) return absl::OkStatus();
  GMB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  for (const auto& [key, usage] : rows) {
    Statement add(&database_, kAdd);
    add.Bind(key.day).Bind(key.tenant).Bind(key.device);
    add.Bind(Signed(usage.peak_bytes)).Bind(usage.byte_seconds);
    add.Bind(Signed(usage.granted)).Bind(Signed(usage.refused));
    add.Bind(Signed(usage.evictions)).Bind(Signed(usage.evicted_bytes));
    add.Bind(Signed(usage.restores)).Bind(Signed(usage.restored_bytes));
    GMB_RETURN_IF_ERROR(add.Run());
  }
  const int64_t day = rows.begin()->first.day;  // the newest of them
  if (day != pruned_day_) GMB_RETURN_IF_ERROR(Prune());
  GMB_RETURN_IF_ERROR(transaction.Commit());
  pruned_day_ = day;
  return absl::OkStatus();
}

// Whole days, the oldest first, so that a day is there or is not. Days are
// counted, not reckoned: a clock that was years ahead for a moment leaves one.
absl::Status UsageStore::Prune() {
  Statement days(&database_,
                 "DELETE FROM usage WHERE day NOT IN (SELECT DISTINCT day "
                 "FROM usage ORDER BY day DESC LIMIT ?)");
  GMB_RETURN_IF_ERROR(days.Bind(kept_.days).Run());
  Statement rows(&database_,
                 "DELETE FROM usage WHERE day <= (SELECT day FROM usage "
                 "ORDER BY day DESC LIMIT 1 OFFSET ?) "
                 "AND day < (SELECT MAX(day) FROM usage)");
  return rows.Bind(kept_.rows).Run();
}

absl::StatusOr<std::vector<std::pair<UsageKey, Usage>>> UsageStore::List(
    int64_t since_day, const std::string& tenant,
    const std::optional<UsageKey>& after, size_t most) {
  Statement query(&database_, kList);
  query.Bind(since_day).Bind(tenant);
  if (after.has_value()) {
    query.Bind(after->day).Bind(after->tenant).Bind(after->device);
  } else {
    query.Bind(std::numeric_limits<int64_t>::max()).Bind("").Bind("");
  }
  query.Bind(static_cast<int64_t>(most));
  std::vector<std::pair<UsageKey, Usage>> rows;
  while (true) {
    GMB_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return rows;
    rows.emplace_back(UsageKey{query.Int(0), query.Text(1), query.Text(2)},
                      Usage{.peak_bytes = Unsigned(query.Int(3)),
                            .byte_seconds = query.Double(4),
                            .granted = Unsigned(query.Int(5)),
                            .refused = Unsigned(query.Int(6)),
                            .evictions = Unsigned(query.Int(7)),
                            .evicted_bytes = Unsigned(query.Int(8)),
                            .restores = Unsigned(query.Int(9)),
                            .restored_bytes = Unsigned(query.Int(10))});
  }
}

}  // namespace gmb::broker
