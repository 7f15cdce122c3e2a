#ifndef GMB_DEVICE_HOSTPOOL_MACHINE_MEMORY_H_
#define GMB_DEVICE_HOSTPOOL_MACHINE_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace gmb::device {

struct AvailableMemory {
  uint64_t bytes = 0;
  std::string source;  // the file that says so, for the operator
};

// How much memory this process could come to use now: the least of the memory
// that the kernel calls available and the room under the memory limit of each
// control group above it (version 1 or 2; cached file pages that can be dropped
// count as left). `root` stands before /proc and /sys: tests give a folder.
// FAILED_PRECONDITION when /proc/meminfo cannot be read.
[[nodiscard]] absl::StatusOr<AvailableMemory> ReadAvailableMemory(
    const std::string& root = "");

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOSTPOOL_MACHINE_MEMORY_H_
