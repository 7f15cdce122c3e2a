// Operators' changes on the disk: the rows of the audit log.
#include "broker/store/audit_rows.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"

namespace gmb::broker {
namespace {

constexpr char kAdd[] = R"sql(
  INSERT INTO audit(at_ns, operator_name, action, subject, detail)
    VALUES(?,?,?,?,?))sql";

// A number may be used again, for another record.
constexpr char kIsIt[] =
    " WHERE id = ? AND at_ns = ? AND operator_name = ? AND action = ?";

// Records of several subjects name them in the detail.
constexpr char kList[] = R"sql(
  SELECT at_ns, operator_name, action, subject, detail, id FROM audit
    WHERE id < ?1 AND at_ns >= ?2 AND (?3 = '' OR subject = ?3 OR (
      replace(action, '_taken_back', '')
        IN ('apply', 'apply_file', 'override_ended')
      AND (instr('; ' || detail, '; ' || ?3 || ': ') OR
           instr('; ' || detail, '; tenant ' || ?3 || ' is '))))
    ORDER BY id DESC LIMIT ?4)sql";

Statement& BindIt(const AuditRecord& record, Statement* statement) {
  return statement->Bind(record.id)
      .Bind(absl::ToUnixNanos(record.at))
      .Bind(record.operator_name)
      .Bind(record.action);
}

}  // namespace

absl::Status AddAudit(AuditRecord* record, Database* database) {
  Statement add(database, kAdd);
  add.Bind(absl::ToUnixNanos(record->at))
      .Bind(record->operator_name)
      .Bind(record->action)
      .Bind(record->subject)
      .Bind(record->detail);
  GMB_RETURN_IF_ERROR(add.Run());
  GMB_ASSIGN_OR_RETURN(record->id,
                       database->QueryInt("SELECT MAX(id) FROM audit"));
  Statement forget(database, "DELETE FROM audit WHERE id <= ?");
  return forget.Bind(record->id - kKeptAuditRecords).Run();
}

absl::StatusOr<bool> HasAudit(const AuditRecord& record, Database* database) {
  if (record.id == 0) return false;
  const std::string sql = absl::StrCat("SELECT 1 FROM audit", kIsIt);
  Statement look(database, sql.c_str());
  return BindIt(record, &look).Step();
}

// Its number is used again, so that what is refused does not shorten the list,
// which is kept by numbers.
absl::Status TakeOutAudit(const AuditRecord& record, Database* database) {
  const std::string sql = absl::StrCat("DELETE FROM audit", kIsIt);
  Statement take_out(database, sql.c_str());
  GMB_RETURN_IF_ERROR(BindIt(record, &take_out).Run());
  return database->Execute(
      "UPDATE sqlite_sequence SET seq = (SELECT IFNULL(MAX(id), 0) FROM audit) "
      "WHERE name = 'audit'");
}

absl::StatusOr<std::vector<AuditRecord>> ListAudit(uint32_t limit,
                                                   int64_t before,
                                                   const AuditFilter& filter,
                                                   Database* database) {
  Statement list(database, kList);
  list.Bind(before > 0 ? before : std::numeric_limits<int64_t>::max())
      .Bind(absl::ToUnixNanos(filter.since))
      .Bind(filter.subject)
      .Bind(static_cast<int64_t>(limit));
  std::vector<AuditRecord> records;
  for (;;) {
    GMB_ASSIGN_OR_RETURN(const bool row, list.Step());
    if (!row) return records;
    records.push_back({.at = absl::FromUnixNanos(list.Int(0)),
                       .operator_name = list.Text(1),
                       .action = list.Text(2),
                       .subject = list.Text(3),
                       .detail = list.Text(4),
                       .id = list.Int(5)});
  }
}

}  // namespace gmb::broker
