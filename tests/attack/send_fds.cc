// Fds that nobody asked for.
#include "tests/attack/send_fds.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace gmb::attack {

int SendFds(int socket, const std::string& bytes,
            const std::vector<base::UniqueFd>& fds) {
  iovec part{.iov_base = const_cast<char*>(bytes.data()),
             .iov_len = bytes.size()};
  std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  for (size_t i = 0; i < fds.size(); ++i) {
    const int fd = fds[i].get();
    std::memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof(int));
  }
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 ? errno : 0;
}

}  // namespace gmb::attack
