#ifndef GMB_BROKER_DAEMON_CHECK_KEEPER_H_
#define GMB_BROKER_DAEMON_CHECK_KEEPER_H_

#include <string>

namespace gmb::broker {

// For `gmbd --check`: prints what the keeper at this socket has. False: nobody
// answers there, and a start would fail. Empty: there is none.
[[nodiscard]] bool KeeperAnswers(const std::string& socket);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_CHECK_KEEPER_H_
