#ifndef GMB_TESTS_COMPONENT_AWAIT_H_
#define GMB_TESTS_COMPONENT_AWAIT_H_

#include <chrono>
#include <functional>
#include <thread>

namespace gmb::component {

// How long another process may take for what should be quick: long enough for
// an instrumented build on a busy machine.
inline constexpr std::chrono::seconds kPatience{60};

// Looks until `holds` is true; false when it is not within `patience`. For what
// happens in other processes, which nothing here can be notified of.
[[nodiscard]] inline bool Await(
    const std::function<bool()>& holds,
    std::chrono::milliseconds patience = kPatience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_AWAIT_H_
