// Puts the guards of tenants' sockets where gRPC calls the C library.
#include "broker/gateway/grpc_system_calls.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/gateway/kernel_calls.h"

namespace gmb::broker {
namespace {

// By fd; read by every call for an fd, so without a lock. An entry stays valid
// until the close of its fd, after which nobody sane uses that. Never
// destroyed: gRPC closes sockets until the very end. Memory that no fd has
// touched costs nothing.
using Entry = std::shared_ptr<GuardedSocket>;
std::array<std::atomic<Entry*>, kMostFds> guarded_by_fd;

Entry* Find(int fd) {
  if (fd < 0 || fd >= kMostFds) return nullptr;
  return guarded_by_fd[static_cast<size_t>(fd)].load(std::memory_order_acquire);
}

// From now on it is nobody's; nullptr: the fd has none.
std::unique_ptr<Entry> Take(int fd) {
  if (Find(fd) == nullptr) return nullptr;
  return std::unique_ptr<Entry>(
      guarded_by_fd[static_cast<size_t>(fd)].exchange(nullptr));
}

}  // namespace

absl::Status GuardUntilClosed(int fd, std::shared_ptr<GuardedSocket> socket) {
  if (fd < 0 || fd >= kMostFds) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "fd ", fd, " is beyond ", kMostFds,
        ": start gmbd with a lower limit of open files (ulimit -n)"));
  }
  auto entry = std::make_unique<Entry>(std::move(socket));
  guarded_by_fd[static_cast<size_t>(fd)].store(entry.release(),
                                               std::memory_order_release);
  return absl::OkStatus();
}

}  // namespace gmb::broker

extern "C" {

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const auto* const socket = gmb::broker::Find(fd);
  return socket == nullptr ? gmb::broker::KernelReceive(fd, message, flags)
                           : (*socket)->Receive(message, flags);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  const auto* const socket = gmb::broker::Find(fd);
  return socket == nullptr ? gmb::broker::KernelSend(fd, message, flags)
                           : (*socket)->Send(message, flags);
}

int close(int fd) {
  const auto socket = gmb::broker::Take(fd);
  if (socket == nullptr) return gmb::broker::KernelClose(fd);
  (*socket)->Close();
  return 0;
}

}  // extern "C"
