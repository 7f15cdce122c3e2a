#ifndef GMB_TESTS_QUOTA_FROM_ENVIRONMENT_H_
#define GMB_TESTS_QUOTA_FROM_ENVIRONMENT_H_

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace gmb::quota {

// A number of the environment, such as a seed to repeat; `otherwise` where
// there is none.
inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  uint64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_FROM_ENVIRONMENT_H_
