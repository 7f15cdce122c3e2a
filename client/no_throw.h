#ifndef GMB_CLIENT_NO_THROW_H_
#define GMB_CLIENT_NO_THROW_H_

#include <cxxabi.h>

#include <exception>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "base/cancels_later.h"

namespace gmb::internal {

// The edge of the library: nothing that is thrown inside leaves it. The end of
// a thread, by pthread_exit in a function of the application, is no exception: it
// unwinds all of the thread, this library too, and who stops it ends the process.
// A pthread_cancel waits until the call is over.

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
auto NoThrow(Body&& body) -> decltype(body()) {
  const base::CancelsLater cancels_later;
  try {
    return std::forward<Body>(body)();
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return CaughtException();
  }
}

// Calls a handler of the application; what it throws is dropped. One of Python
// ends its thread where the interpreter has ended.
template <typename Handler, typename... Args>
void CallAndDropExceptions(const Handler& handler, Args&&... args) {
  try {
    handler(std::forward<Args>(args)...);
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {  // NOLINT(bugprone-empty-catch): documented in gmb/options.h
  }
}

}  // namespace gmb::internal

#endif  // GMB_CLIENT_NO_THROW_H_
