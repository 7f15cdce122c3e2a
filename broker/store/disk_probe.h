#ifndef GMB_BROKER_STORE_DISK_PROBE_H_
#define GMB_BROKER_STORE_DISK_PROBE_H_

#include <string>

#include "absl/status/status.h"

namespace gmb::broker {

// Whether the directory's disk takes what an operator's change needs: writes so
// much to a file without a name, and waits until it is on the disk.
[[nodiscard]] absl::Status ProbeDisk(const std::string& directory);

}  // namespace gmb::broker

#endif  // GMB_BROKER_STORE_DISK_PROBE_H_
