#ifndef GMB_TESTS_DEVICE_SPIN_KERNEL_H_
#define GMB_TESTS_DEVICE_SPIN_KERNEL_H_

#include <string>

#include "absl/status/status.h"

namespace gmb::device {

// Starts a kernel on the GPU with this UUID that writes to the first 540 KB at
// `memory` for 15 s, and does not wait for it. For clients that are killed.
[[nodiscard]] absl::Status StartSpinKernel(const std::string& uuid,
                                           void* memory);

}  // namespace gmb::device

#endif  // GMB_TESTS_DEVICE_SPIN_KERNEL_H_
