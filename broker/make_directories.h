#ifndef GMB_BROKER_MAKE_DIRECTORIES_H_
#define GMB_BROKER_MAKE_DIRECTORIES_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace gmb::broker {

// Makes `path` with exactly `mode`, whatever the umask, and what is missing
// above it with 0755. A directory that exists stays as it is.
[[nodiscard]] absl::Status MakeDirectories(const std::string& path,
                                           mode_t mode);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MAKE_DIRECTORIES_H_
