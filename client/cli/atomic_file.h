#ifndef GMB_CLIENT_CLI_ATOMIC_FILE_H_
#define GMB_CLIENT_CLI_ATOMIC_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gmb::cli {

// Puts a file with this text in the place of what is at `path`: who reads there
// sees the old one or the new one, whole. Mode 0644, less the umask. After an
// error the old one is there still, and nothing beside it.
[[nodiscard]] absl::Status ReplaceFile(const std::string& path,
                                       absl::string_view text);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_ATOMIC_FILE_H_
