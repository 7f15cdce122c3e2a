// Pass an error on to the caller: for functions that return absl::Status or
// absl::StatusOr.
#ifndef GMB_BASE_STATUS_MACROS_H_
#define GMB_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the absl::Status that the expression yields, unless it is OK:
//
//   GMB_RETURN_IF_ERROR(file.Write(bytes));
#define GMB_RETURN_IF_ERROR(...)             \
  do {                                       \
    absl::Status gmb_status = (__VA_ARGS__); \
    if (!gmb_status.ok()) return gmb_status; \
  } while (false)

// Declares or sets `place` to the value of an absl::StatusOr, or returns its
// error. Two statements: not the body of an `if` without braces.
//
//   GMB_ASSIGN_OR_RETURN(const CudaDevice device, FindCudaDevice(name));
#define GMB_ASSIGN_OR_RETURN(place, ...)                                    \
  GMB_ASSIGN_OR_RETURN_BY(GMB_STATUS_MACROS_NAME(gmb_status_or_, __LINE__), \
                          place, __VA_ARGS__)

#define GMB_ASSIGN_OR_RETURN_BY(result, place, ...)    \
  auto result = (__VA_ARGS__);                         \
  if (!result.ok()) return std::move(result).status(); \
  place = *std::move(result) /* NOLINT(bugprone-macro-parentheses) */

#define GMB_STATUS_MACROS_NAME(prefix, line) \
  GMB_STATUS_MACROS_NAME_OF(prefix, line)
#define GMB_STATUS_MACROS_NAME_OF(prefix, line) prefix##line

#endif  // GMB_BASE_STATUS_MACROS_H_
