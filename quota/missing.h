#ifndef GMB_QUOTA_MISSING_H_
#define GMB_QUOTA_MISSING_H_

#include <cstdint>

namespace gmb::quota {

// The bytes of a pool that its device does not have for it.
struct Missing {
  uint64_t bytes = 0;
  uint64_t returning_bytes = 0;  // of these, those that come back by themselves

  [[nodiscard]] uint64_t LostBytes() const { return bytes - returning_bytes; }
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_MISSING_H_
