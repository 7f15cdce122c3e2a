// Operators' changes on the disk: what is declared, row by row.
#include "broker/store/declared_rows.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace gmb::broker {
namespace {

using Subjects = std::map<std::string, Subject>;
constexpr char kTenant[] = "tenant";
constexpr char kPool[] = "pool";

// Any number may be in a database that others wrote.
Source SourceOf(int64_t writer, std::string name) {
  if (writer == static_cast<int64_t>(Source::Writer::kFile)) return {};
  for (const auto known : {Source::Writer::kApply, Source::Writer::kOverride}) {
    if (writer == static_cast<int64_t>(known)) return {known, std::move(name)};
  }
  return {Source::Writer::kOperator, std::move(name)};
}

// Writes are numbered, and no broker makes so many.
constexpr int64_t kMostWrites = int64_t{1} << 62;

absl::StatusOr<uint64_t> OrderOf(int64_t written) {
  if (written >= 0 && written < kMostWrites)
    return static_cast<uint64_t>(written);
  return absl::DataLossError(absl::StrCat(
      "the state database is damaged: it has a write of number ", written));
}

absl::Status LoadSubjects(Database* database, const char* kind,
                          Subjects* subjects) {
  Statement list(database,
                 "SELECT name, maker, maker_name, in_file, deleted "
                 "FROM subjects WHERE kind = ?");
  list.Bind(kind);
  for (;;) {
    GMB_ASSIGN_OR_RETURN(const bool row, list.Step());
    if (!row) return absl::OkStatus();
    Subject& subject = (*subjects)[list.Text(0)];
    subject.maker = SourceOf(list.Int(1), list.Text(2));
    subject.in_file = list.Int(3) != 0;
    subject.deleted = list.Int(4) != 0;
  }
}

// Also where the database says otherwise the next write is behind all of them:
// else a change would be stored, and not be in force.
absl::Status LoadFields(Database* database, const char* kind,
                        Subjects* subjects, uint64_t* next_order) {
  Statement list(database,
                 "SELECT subject, field, source, source_name, value, at_ns, "
                 "written, until_ns FROM fields WHERE kind = ?");
  list.Bind(kind);
  for (;;) {
    GMB_ASSIGN_OR_RETURN(const bool row, list.Step());
    if (!row) return absl::OkStatus();
    const auto subject = subjects->find(list.Text(0));
    if (subject == subjects->end()) continue;
    GMB_ASSIGN_OR_RETURN(const uint64_t order, OrderOf(list.Int(6)));
    *next_order = std::max(*next_order, order + 1);
    Written written{.value = list.Text(4),
                    .source = SourceOf(list.Int(2), list.Text(3)),
                    .at = absl::FromUnixNanos(list.Int(5)),
                    .order = order,
                    .until = {}};
    if (!list.IsNull(7)) written.until = absl::FromUnixNanos(list.Int(7));
    PutWritten(list.Text(1), std::move(written), &subject->second);
  }
}

absl::Status LoadFormer(Database* database, const char* kind,
                        Subjects* subjects) {
  Statement list(database,
                 "SELECT subject, field, value FROM former WHERE kind = ?");
  list.Bind(kind);
  for (;;) {
    GMB_ASSIGN_OR_RETURN(const bool row, list.Step());
    if (!row) return absl::OkStatus();
    const auto subject = subjects->find(list.Text(0));
    if (subject != subjects->end())
      subject->second.former[list.Text(1)] = list.Text(2);
  }
}

absl::Status PutFormer(const char* kind, const std::string& name,
                       const Fields& former, Database* database) {
  for (const auto& [field, value] : former) {
    Statement put(database,
                  "INSERT INTO former(kind, subject, field, value) "
                  "VALUES(?,?,?,?)");
    put.Bind(kind).Bind(name).Bind(field).Bind(value);
    GMB_RETURN_IF_ERROR(put.Run());
  }
  return absl::OkStatus();
}

absl::Status PutField(const char* kind, const std::string& name,
                      const std::string& field, const Written& written,
                      Database* database) {
  Statement put(database,
                "INSERT INTO fields(kind, subject, field, source, source_name, "
                "value, at_ns, written, until_ns) VALUES(?,?,?,?,?,?,?,?,?)");
  put.Bind(kind)
      .Bind(name)
      .Bind(field)
      .Bind(static_cast<int64_t>(written.source.writer))
      .Bind(written.source.name)
      .Bind(written.value)
      .Bind(absl::ToUnixNanos(written.at))
      .Bind(static_cast<int64_t>(written.order));
  if (written.until.has_value()) {
    put.Bind(absl::ToUnixNanos(*written.until));
  } else {
    put.BindNull();
  }
  return put.Run();
}

absl::Status PutSubject(const char* kind, const std::string& name,
                        const Subject& subject, Database* database) {
  Statement put(database,
                "INSERT INTO subjects(kind, name, maker, maker_name, in_file, "
                "deleted) VALUES(?,?,?,?,?,?)");
  put.Bind(kind)
      .Bind(name)
      .Bind(static_cast<int64_t>(subject.maker.writer))
      .Bind(subject.maker.name)
      .Bind(static_cast<int64_t>(subject.in_file))
      .Bind(static_cast<int64_t>(subject.deleted));
  GMB_RETURN_IF_ERROR(put.Run());
  for (const auto& [field, writes] : subject.fields) {
    for (const Written& written : writes) {
      GMB_RETURN_IF_ERROR(PutField(kind, name, field, written, database));
    }
  }
  return PutFormer(kind, name, subject.former, database);
}

// With it goes what belongs to it (ON DELETE CASCADE); and what belonged to none,
// in a database that others wrote: it would come to the next one of that name.
absl::Status Remove(const char* kind, const std::string& name,
                    Database* database) {
  for (const char* const sql :
       {"DELETE FROM subjects WHERE kind = ? AND name = ?",
        "DELETE FROM fields WHERE kind = ? AND subject = ?",
        "DELETE FROM former WHERE kind = ? AND subject = ?"}) {
    Statement remove(database, sql);
    GMB_RETURN_IF_ERROR(remove.Bind(kind).Bind(name).Run());
  }
  return absl::OkStatus();
}

absl::Status SaveSubjects(const char* kind, const Subjects& before,
                          const Subjects& after, Database* database) {
  for (const auto& [name, subject] : before) {
    if (after.contains(name)) continue;
    GMB_RETURN_IF_ERROR(Remove(kind, name, database));
  }
  for (const auto& [name, subject] : after) {
    const auto was = before.find(name);
    if (was != before.end() && was->second == subject) continue;
    GMB_RETURN_IF_ERROR(Remove(kind, name, database));
    GMB_RETURN_IF_ERROR(PutSubject(kind, name, subject, database));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Declared> LoadDeclared(Database* database) {
  Declared declared;
  {
    Statement one(database, "SELECT file_applied, next_written FROM declared");
    GMB_ASSIGN_OR_RETURN(const bool row, one.Step());
    if (row) {
      declared.file_applied = one.Int(0) != 0;
      GMB_ASSIGN_OR_RETURN(declared.next_order, OrderOf(one.Int(1)));
    }
  }
  GMB_RETURN_IF_ERROR(LoadSubjects(database, kTenant, &declared.tenants));
  GMB_RETURN_IF_ERROR(LoadSubjects(database, kPool, &declared.pools));
  GMB_RETURN_IF_ERROR(
      LoadFields(database, kTenant, &declared.tenants, &declared.next_order));
  GMB_RETURN_IF_ERROR(
      LoadFields(database, kPool, &declared.pools, &declared.next_order));
  GMB_RETURN_IF_ERROR(LoadFormer(database, kTenant, &declared.tenants));
  return declared;
}

absl::Status SaveDeclared(const Declared& before, const Declared& after,
                          Database* database) {
  GMB_RETURN_IF_ERROR(
      SaveSubjects(kTenant, before.tenants, after.tenants, database));
  GMB_RETURN_IF_ERROR(SaveSubjects(kPool, before.pools, after.pools, database));
  GMB_RETURN_IF_ERROR(database->Execute("DELETE FROM declared"));
  Statement put(database,
                "INSERT INTO declared(file_applied, next_written) VALUES(?,?)");
  return put.Bind(static_cast<int64_t>(after.file_applied))
      .Bind(static_cast<int64_t>(after.next_order))
      .Run();
}

}  // namespace gmb::broker
