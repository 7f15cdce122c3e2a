#ifndef GMB_TESTS_CLIENT_OR_THROW_H_
#define GMB_TESTS_CLIENT_OR_THROW_H_

#include <stdexcept>
#include <utility>

#include "absl/status/statusor.h"

namespace gmb::test {

template <typename T>
T OrThrow(absl::StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

}  // namespace gmb::test

#endif  // GMB_TESTS_CLIENT_OR_THROW_H_
