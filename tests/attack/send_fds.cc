// Fds that nobody asked for.
#include "tests/attack/send_fds.h"

#include <sys/socket.h>

#include "tests/ipc/send_fd.h"

namespace gmb::attack {

int SendFds(int socket, const std::string& bytes,
            const std::vector<base::UniqueFd>& fds) {
  std::vector<int> numbers;
  numbers.reserve(fds.size());
  for (const base::UniqueFd& fd : fds) numbers.push_back(fd.get());
  return testing::SendFds(socket, bytes, numbers, MSG_DONTWAIT);
}

}  // namespace gmb::attack
