#ifndef GMB_TESTS_ATTACK_SEND_FDS_H_
#define GMB_TESTS_ATTACK_SEND_FDS_H_

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace gmb::attack {

// Sends bytes with fds over any Unix socket, without waiting. 0, or errno.
[[nodiscard]] int SendFds(int socket, const std::string& bytes,
                          const std::vector<base::UniqueFd>& fds);

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_SEND_FDS_H_
