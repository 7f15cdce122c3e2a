#ifndef GMB_TESTS_IPC_SEND_FD_H_
#define GMB_TESTS_IPC_SEND_FD_H_

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace gmb::testing {

// Sends one byte with an fd over a Unix socket. 0, or errno. More flags as those
// of sendmsg.
inline int SendFd(int socket, char byte, int fd, int flags = 0) {
  iovec piece{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(fd))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(fd));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0 ? errno : 0;
}

}  // namespace gmb::testing

#endif  // GMB_TESTS_IPC_SEND_FD_H_
