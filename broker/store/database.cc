// Operators' changes on the disk: SQLite, with errors as status.
#include "broker/store/database.h"

#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace gmb::broker {
namespace {

absl::StatusCode CodeOf(int code) {
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    default:
      // A write beyond a quota or a file size limit is reported as an I/O
      // error.
      return (code == SQLITE_IOERR_WRITE) ? absl::StatusCode::kResourceExhausted
                                          : absl::StatusCode::kInternal;
  }
}

const char* Advice(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return "the disk of the state directory is full: make room there; "
             "nothing was changed";
    case absl::StatusCode::kDataLoss:
      return "the database is damaged";
    case absl::StatusCode::kPermissionDenied:
      return "the database cannot be written: check the owner and mode "
             "of the state directory";
    case absl::StatusCode::kUnavailable:
      return "another process keeps the database locked";
    default:
      return "the database failed";
  }
}

}  // namespace

void Database::Closer::operator()(sqlite3* handle) const {
  ::sqlite3_close_v2(handle);
}
void Statement::Finalizer::operator()(sqlite3_stmt* statement) const {
  ::sqlite3_finalize(statement);
}

absl::StatusOr<Database> Database::Open(const std::string& path) {
  sqlite3* raw = nullptr;
  const int opened = ::sqlite3_open_v2(
      path.c_str(), &raw,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
      nullptr);
  Database database(path, std::unique_ptr<sqlite3, Closer>(raw));
  if (raw == nullptr)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for the database: ", path));
  ::sqlite3_extended_result_codes(raw, 1);
  if (opened != SQLITE_OK) return database.ToStatus(opened);
  ::sqlite3_busy_timeout(raw, 5000);
  // A file from elsewhere must not be able to run code of its own.
  ::sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  ::sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return database;
}

absl::Status Database::ToStatus(int code) const {
  const absl::StatusCode status = CodeOf(code);
  return absl::Status(status, absl::StrCat(Advice(status), ": ", path_, ": ",
                                           ::sqlite3_errmsg(handle_.get())));
}

absl::Status Database::Execute(const char* sql) {
  const int code =
      ::sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : ToStatus(code);
}

absl::StatusOr<int64_t> Database::QueryInt(const char* sql) {
  Statement query(this, sql);
  GMB_ASSIGN_OR_RETURN(const bool row, query.Step());
  return row ? query.Int(0) : 0;
}

absl::StatusOr<std::string> Database::QueryText(const char* sql) {
  Statement query(this, sql);
  GMB_ASSIGN_OR_RETURN(const bool row, query.Step());
  return row ? query.Text(0) : std::string();
}

Statement::Statement(Database* database, const char* sql)
    : database_(database) {
  sqlite3_stmt* raw = nullptr;
  Note(::sqlite3_prepare_v2(database->handle_.get(), sql, -1, &raw, nullptr));
  statement_.reset(raw);
}

void Statement::Note(int code) {
  if (error_ == SQLITE_OK) error_ = code;
}

Statement& Statement::Bind(absl::string_view text) {
  Note(::sqlite3_bind_text64(statement_.get(), next_parameter_++,
                             text.empty() ? "" : text.data(), text.size(),
                             SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}
Statement& Statement::Bind(int64_t number) {
  Note(::sqlite3_bind_int64(statement_.get(), next_parameter_++, number));
  return *this;
}
Statement& Statement::Bind(double number) {
  Note(::sqlite3_bind_double(statement_.get(), next_parameter_++, number));
  return *this;
}
Statement& Statement::BindNull() {
  Note(::sqlite3_bind_null(statement_.get(), next_parameter_++));
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  if (error_ != SQLITE_OK) return database_->ToStatus(error_);
  const int code = ::sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->ToStatus(code);
}

absl::Status Statement::Run() { return Step().status(); }

std::string Statement::Text(int column) const {
  const auto* text = ::sqlite3_column_text(statement_.get(), column);
  if (text == nullptr) return "";
  return std::string(
      reinterpret_cast<const char*>(text),
      static_cast<size_t>(::sqlite3_column_bytes(statement_.get(), column)));
}
int64_t Statement::Int(int column) const {
  return ::sqlite3_column_int64(statement_.get(), column);
}
double Statement::Double(int column) const {
  return ::sqlite3_column_double(statement_.get(), column);
}
bool Statement::IsNull(int column) const {
  return ::sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

absl::StatusOr<Transaction> Transaction::Begin(Database* database) {
  GMB_RETURN_IF_ERROR(database->Execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // Fails where SQLite has rolled back by itself, which is as good.
  if (database_ != nullptr) database_->Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  const absl::Status committed = database_->Execute("COMMIT");
  if (committed.ok()) database_ = nullptr;
  return committed;
}

}  // namespace gmb::broker
