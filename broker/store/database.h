#ifndef GMB_BROKER_STORE_DATABASE_H_
#define GMB_BROKER_STORE_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace gmb::broker {

// One SQLite database, and errors as status:
//   RESOURCE_EXHAUSTED   the disk is full, or a size limit was met
//   DATA_LOSS            the file is damaged or no database
//   PERMISSION_DENIED    the file or its directory is not writable
//   UNAVAILABLE          another process keeps it locked
//   INTERNAL             anything else, in SQLite's words
// Not thread-safe.
class Database {
 public:
  // The file must exist; an empty one is an empty database.
  static absl::StatusOr<Database> Open(const std::string& path);

  // Runs statements without results.
  absl::Status Execute(const char* sql);
  // The first column of the first row.
  absl::StatusOr<int64_t> QueryInt(const char* sql);
  absl::StatusOr<std::string> QueryText(const char* sql);

 private:
  friend class Statement;
  struct Closer {
    void operator()(sqlite3* handle) const;
  };
  Database(std::string path, std::unique_ptr<sqlite3, Closer> handle)
      : path_(std::move(path)), handle_(std::move(handle)) {}

  absl::Status ToStatus(int code) const;

  std::string path_;
  std::unique_ptr<sqlite3, Closer> handle_;
};

// One statement with its parameters, bound from left to right, and its row,
// read by column. An error of a Bind shows in the next Step.
class Statement {
 public:
  Statement(Database* database, const char* sql);

  Statement& Bind(absl::string_view text);
  Statement& Bind(int64_t number);
  Statement& Bind(double number);
  Statement& BindNull();

  // True: there is a row. False: there are no more.
  absl::StatusOr<bool> Step();
  // Runs a statement that has no rows.
  absl::Status Run();

  [[nodiscard]] std::string Text(int column) const;
  [[nodiscard]] int64_t Int(int column) const;
  [[nodiscard]] double Double(int column) const;
  [[nodiscard]] bool IsNull(int column) const;

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  void Note(int code);

  Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  int next_parameter_ = 1;
  int error_ = 0;
};

// All of it or nothing: rolled back unless committed.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Database* database);
  Transaction(Transaction&& other) noexcept : database_(other.database_) {
    other.database_ = nullptr;
  }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  absl::Status Commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}

  Database* database_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_DATABASE_H_
