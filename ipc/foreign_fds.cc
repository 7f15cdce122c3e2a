// Keeps fds that strangers send away from the threads that serve everybody.
#include "ipc/foreign_fds.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "absl/status/status.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83  // newer than the headers we build against
#endif

namespace gmb::ipc {

namespace {

bool PassesCredentials(int socket) {
  int on = 0;
  socklen_t size = sizeof(on);
  return ::getsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, &size) == 0 &&
         on != 0;
}

}  // namespace

bool RefuseFds(int socket) {
  const int off = 0;
  return ::setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) ==
         0;
}

void TakeFds(int socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
}

bool RefusesFds(int socket) {
  int on = 1;
  socklen_t size = sizeof(on);
  return ::getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &on, &size) == 0 &&
         on == 0;
}

absl::StatusOr<bool> NextPacketHasFds(int socket) {
  char first = 0;
  iovec data{.iov_base = &first, .iov_len = 1};
  // Room for credentials alone, where they come: fds have none left, and the
  // kernel says so. A look leaves the packet's own references in place, so this
  // drops no fd's last one.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  const size_t room = PassesCredentials(socket) ? control.size() : 0;
  while (true) {
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = room;
    if (::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT) >= 0)
      return (message.msg_flags & MSG_CTRUNC) != 0;
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return false;
    return absl::ErrnoToStatus(errno, "recvmsg");
  }
}

}  // namespace gmb::ipc
