#ifndef GMB_BROKER_STORE_SCHEMA_H_
#define GMB_BROKER_STORE_SCHEMA_H_

#include "absl/status/status.h"
#include "broker/store/database.h"

namespace gmb::broker {

// Checks the file's integrity and that it is ours, and makes the tables in an
// empty one; one of an older broker is brought up to date, at once or not at
// all. DATA_LOSS: damaged, or a database of something else.
// FAILED_PRECONDITION: written by a newer broker.
[[nodiscard]] absl::Status PrepareSchema(Database* database);

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_SCHEMA_H_
