#ifndef GMB_IPC_OPEN_FILES_H_
#define GMB_IPC_OPEN_FILES_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace gmb::ipc {

// Raises this process's limit on open files (RLIMIT_NOFILE) as far as the
// system lets it, and returns the limit now in force.
[[nodiscard]] absl::StatusOr<uint64_t> RaiseFdLimit();

}  // namespace gmb::ipc

#endif  // GMB_IPC_OPEN_FILES_H_
