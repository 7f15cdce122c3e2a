#ifndef GMB_TESTS_IPC_SEND_FD_H_
#define GMB_TESTS_IPC_SEND_FD_H_

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace gmb::testing {

// Sends bytes with fds over a Unix socket. 0, or errno. More flags as those of
// sendmsg.
inline int SendFds(int socket, const std::string& bytes,
                   const std::vector<int>& fds, int flags = 0) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  const size_t size = fds.size() * sizeof(int);
  std::vector<char> control(CMSG_SPACE(size));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(size);
  std::memcpy(CMSG_DATA(header), fds.data(), size);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0 ? errno : 0;
}

// One byte with one fd.
inline int SendFd(int socket, char byte, int fd, int flags = 0) {
  return SendFds(socket, {byte}, {fd}, flags);
}

}  // namespace gmb::testing

#endif  // GMB_TESTS_IPC_SEND_FD_H_
