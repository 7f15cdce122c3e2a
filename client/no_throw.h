#ifndef GMB_CLIENT_NO_THROW_H_
#define GMB_CLIENT_NO_THROW_H_

#include <exception>
#include <new>
#include <utility>

#include "absl/status/status.h"

namespace gmb::internal {

// The edge of the library: nothing that is thrown inside leaves it.

// A status with the message if there is memory for it, without one otherwise.
inline absl::Status StatusWithoutThrowing(absl::StatusCode code,
                                          const char* message) noexcept {
  try {
    return absl::Status(code, message);
  } catch (...) {
    return absl::Status(code, "");
  }
}

// The status for the exception being handled.
inline absl::Status CaughtException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return StatusWithoutThrowing(absl::StatusCode::kResourceExhausted,
                                 "gmb: this process is out of memory");
  } catch (const std::exception& e) {
    return StatusWithoutThrowing(absl::StatusCode::kInternal, e.what());
  } catch (...) {
    return StatusWithoutThrowing(absl::StatusCode::kInternal,
                                 "gmb: unknown exception");
  }
}

// Calls `body`, which returns a Status or StatusOr; what it throws becomes one.
template <typename Body>
auto NoThrow(Body&& body) noexcept -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return CaughtException();
  }
}

// Calls a handler of the application; what it throws is dropped.
template <typename Handler, typename... Args>
void CallAndDropExceptions(const Handler& handler, Args&&... args) noexcept {
  try {
    handler(std::forward<Args>(args)...);
  } catch (...) {  // NOLINT(bugprone-empty-catch): documented in gmb/options.h
  }
}

}  // namespace gmb::internal

#endif  // GMB_CLIENT_NO_THROW_H_
