#ifndef GMB_BROKER_STORE_DECLARED_ROWS_H_
#define GMB_BROKER_STORE_DECLARED_ROWS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/declared/declared.h"
#include "broker/store/database.h"

namespace gmb::broker {

// The tables of what is declared, since format 3.
inline constexpr char kDeclaredTables[] = R"sql(
  CREATE TABLE subjects(
    kind TEXT NOT NULL,  -- tenant or pool
    name TEXT NOT NULL,  -- of a pool: the device's UUID
    maker INTEGER NOT NULL, maker_name TEXT NOT NULL,
    in_file INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    PRIMARY KEY(kind, name)) STRICT;
  CREATE TABLE fields(
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    field TEXT NOT NULL,
    source INTEGER NOT NULL, source_name TEXT NOT NULL,
    value TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    written INTEGER NOT NULL,  -- rises with every write
    until_ns INTEGER,
    PRIMARY KEY(kind, subject, field, source, source_name),
    FOREIGN KEY(kind, subject) REFERENCES subjects(kind, name)
      ON DELETE CASCADE) STRICT;
  CREATE TABLE declared(
    file_applied INTEGER NOT NULL,
    next_written INTEGER NOT NULL) STRICT;
)sql";

// Beside them, since this release: what tenants had before their last change. A
// broker that does not know it goes on with the database; of a tenant that it
// changes the former values go with the tenant's row.
inline constexpr char kFormerTable[] = R"sql(
  CREATE TABLE IF NOT EXISTS former(
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY(kind, subject, field),
    FOREIGN KEY(kind, subject) REFERENCES subjects(kind, name)
      ON DELETE CASCADE) STRICT;
)sql";

// Texts are as FieldsOf gives them, also those of an earlier broker. The next
// write comes behind all that is there. DATA_LOSS: a write has a number that no
// broker gives.
[[nodiscard]] absl::StatusOr<Declared> LoadDeclared(Database* database);
// Writes what differs. Call it in a transaction.
[[nodiscard]] absl::Status SaveDeclared(const Declared& before,
                                        const Declared& after,
                                        Database* database);

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_DECLARED_ROWS_H_
