#ifndef GMB_TESTS_DEVICE_REMOTE_MAPPER_WIRE_H_
#define GMB_TESTS_DEVICE_REMOTE_MAPPER_WIRE_H_

#include <array>
#include <cstdint>

#include "device/handle.h"

// The packets between the two ends of a RemoteMapper: one request, with at most
// one fd, and one reply. Both ends are the same binary.

namespace gmb::device::remote {

inline constexpr char kRole[] = "--gmb-remote-mapper";
inline constexpr int kSocket = 3;  // where the process finds its socket

enum class Op : uint32_t {
  kReserve,
  kAddSlab,
  kMap,
  kUnmap,
  kFreeRange,
  kFill,
  kCountOther,
  kWritePattern,
  kCountPatternErrors,
  kCountOpenFds,
  kCallHook,
  kSynchronize,
};

struct Request {
  Op op;
  bool keep_fd = false;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t value = 0;
  IpcHandle ipc_handle = {};
};

struct Reply {
  int32_t code = 0;
  uint64_t value = 0;
  uint64_t address = 0;
  int64_t elapsed_ns = 0;
  std::array<char, 400> message = {};
};

}  // namespace gmb::device::remote

#endif  // GMB_TESTS_DEVICE_REMOTE_MAPPER_WIRE_H_
