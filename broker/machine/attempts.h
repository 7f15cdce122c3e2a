#ifndef GMB_BROKER_MACHINE_ATTEMPTS_H_
#define GMB_BROKER_MACHINE_ATTEMPTS_H_

#include <cstdint>

namespace gmb::broker {

// Whether a lease whose slabs could not be created so many times is worth
// another try. `passing`: the bytes should come back by themselves, since
// nobody outside takes what is freed.
[[nodiscard]] inline bool MayTryAgain(uint32_t attempts, bool passing) {
  return attempts < (passing ? 256 : 3);
}

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_ATTEMPTS_H_
