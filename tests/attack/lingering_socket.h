#ifndef GMB_TESTS_ATTACK_LINGERING_SOCKET_H_
#define GMB_TESTS_ATTACK_LINGERING_SOCKET_H_

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::attack {

// A TCP connection within this machine whose `poison` end has written what the
// other one does not read, with SO_LINGER: whoever drops the last reference to
// it sleeps for a minute, or until the `reader` is closed.
struct LingeringSocket {
  base::UniqueFd poison;
  base::UniqueFd reader;
};

absl::StatusOr<LingeringSocket> MakeLingeringSocket();

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_LINGERING_SOCKET_H_
