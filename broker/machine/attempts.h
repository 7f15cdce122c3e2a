#ifndef GMB_BROKER_MACHINE_ATTEMPTS_H_
#define GMB_BROKER_MACHINE_ATTEMPTS_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "quota/units.h"

namespace gmb::broker {

// Whether a lease whose slabs could not be created so many times is worth
// another try. `passing`: the bytes should come back by themselves, since
// nobody outside takes what is freed.
[[nodiscard]] inline bool MayTryAgain(uint32_t attempts, bool passing) {
  return attempts < (passing ? 256 : 3);
}

// For how long slabs are not asked for again that a silent keeper kept from
// being made, so many times already: soon at first, since it may have been
// silent for a moment.
[[nodiscard]] inline quota::Nanoseconds PutOffFor(uint32_t times) {
  constexpr quota::Nanoseconds kFirst = std::chrono::milliseconds(25);
  constexpr quota::Nanoseconds kLongest = std::chrono::seconds(1);
  return std::min(kLongest, kFirst * (1U << std::min(times, 6U)));
}

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_ATTEMPTS_H_
