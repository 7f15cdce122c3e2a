#ifndef GMB_CLIENT_C_C_ERROR_H_
#define GMB_CLIENT_C_C_ERROR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/no_throw.h"

// The struct behind gmb_error.
struct gmb_error {
  int32_t code = 0;
  int32_t reason = 0;
  std::string message;
  std::string field;
  uint64_t deficit_bytes = 0;
  int64_t retry_after_ms = 0;
};

namespace gmb::internal {

// Null for OK. When there is no memory for an error, a shared one that says so.
[[nodiscard]] gmb_error* ToCError(const absl::Status& status) noexcept;

// Calls `body`, which returns a Status; nothing that it throws gets out.
template <typename Body>
[[nodiscard]] gmb_error* CEdge(Body&& body) {
  return ToCError(NoThrow(std::forward<Body>(body)));
}

}  // namespace gmb::internal

#endif  // GMB_CLIENT_C_C_ERROR_H_
