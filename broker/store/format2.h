#ifndef GMB_BROKER_STORE_FORMAT2_H_
#define GMB_BROKER_STORE_FORMAT2_H_

#include "absl/status/status.h"
#include "broker/store/database.h"

namespace gmb::broker {

// Makes the tables of format 3 and moves into them what operators stored in
// format 2, as theirs. Call it in a transaction.
[[nodiscard]] absl::Status MoveToFormat3(Database* database);

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_FORMAT2_H_
