#ifndef GMB_TESTS_DEVICE_REMOTE_MAPPER_WIRE_H_
#define GMB_TESTS_DEVICE_REMOTE_MAPPER_WIRE_H_

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "base/unique_fd.h"
#include "device/handle.h"

// The packets between the two ends of a RemoteMapper: one request and one reply,
// each with at most one fd. Both ends are the same binary.

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
  kCreateSlab,  // answered with its fd
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

inline bool SendPacket(int socket, const void* packet, size_t bytes, int fd) {
  iovec part = {const_cast<void*>(packet), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

// False: the other end is gone.
inline bool ReceivePacket(int socket, void* packet, size_t bytes,
                          base::UniqueFd* fd) {
  iovec part = {packet, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) !=
      static_cast<ssize_t>(bytes)) {
    return false;
  }
  if (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof(received));
    fd->reset(received);
  }
  return true;
}

}  // namespace gmb::device::remote

#endif  // GMB_TESTS_DEVICE_REMOTE_MAPPER_WIRE_H_
