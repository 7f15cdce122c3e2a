#ifndef GMB_BROKER_SERVER_LOGIN_UID_H_
#define GMB_BROKER_SERVER_LOGIN_UID_H_

#include <sys/types.h>

#include <optional>

namespace gmb::broker {

// As whom the process's session logged in, which the kernel keeps through sudo
// and su. None: nobody did (a daemon), or the kernel does not say. It is the
// process's own only while it lives: ask its pidfd afterwards.
[[nodiscard]] std::optional<uid_t> LoginUidOf(pid_t pid);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_LOGIN_UID_H_
