#ifndef GMB_TESTS_BROKER_MACHINE_MACHINE_PROMISES_H_
#define GMB_TESTS_BROKER_MACHINE_MACHINE_PROMISES_H_

#include <string>

#include "broker/machine/state.h"

namespace gmb::broker {

// Checks what guarantees promise, in a pool of which nothing is missing or
// unreturned. Clients break no more of it than what they keep. Empty, or what
// does not hold.
std::string WhichPromiseIsBroken(const State& state, const Pool& pool);

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_MACHINE_MACHINE_PROMISES_H_
