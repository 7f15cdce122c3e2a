#ifndef GMB_IPC_RANDOM_H_
#define GMB_IPC_RANDOM_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gmb::ipc {

// `bytes` random bytes of the kernel, fit for secrets. At most 256.
absl::StatusOr<std::string> RandomToken(size_t bytes);

// Whether `a` and `b` are the same, in a time that depends on their lengths
// alone: for comparing secrets.
[[nodiscard]] bool ConstantTimeEquals(absl::string_view a, absl::string_view b);

}  // namespace gmb::ipc

#endif  // GMB_IPC_RANDOM_H_
