#ifndef GMB_BROKER_MACHINE_GROUP_GATES_H_
#define GMB_BROKER_MACHINE_GROUP_GATES_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "quota/reclaim.h"

namespace gmb::broker {

// The gates of groups, as they were found: a group is looked at once, however
// many leases it has. Good for as long as plans look at their leases anew.
struct GroupGates {
  absl::flat_hash_map<quota::GroupId, quota::Gate> known;
  uint64_t looks = 0;  // at members
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_GROUP_GATES_H_
