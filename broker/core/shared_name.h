#ifndef GMB_BROKER_CORE_SHARED_NAME_H_
#define GMB_BROKER_CORE_SHARED_NAME_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "quota/units.h"

namespace gmb::broker {

// An Attach that is not answered yet.
struct PendingAttach {
  uint64_t session = 0;
  uint64_t client_id = 0;
  quota::Instant asked;
  quota::Instant deadline;
};

// A name of a tenant's shared lease, from the Acquire that takes it until its
// lease ends or is dropped.
struct SharedName {
  quota::RequestId request;             // the Acquire
  uint64_t writer = 0;                  // the session that made it
  std::optional<quota::LeaseId> lease;  // once it is sealed
  std::vector<PendingAttach> waiting;
  // Restores for the sake of who attaches that could not be carried out, since
  // the last that could.
  uint32_t attempts = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_SHARED_NAME_H_
