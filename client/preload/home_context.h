#ifndef GMB_CLIENT_PRELOAD_HOME_CONTEXT_H_
#define GMB_CLIENT_PRELOAD_HOME_CONTEXT_H_

#include <compare>
#include <cstdint>

#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// The context that an allocation is of. As the driver does: its free waits for
// the work of this one alone, which no other one's can reach the memory of, and
// it ends with it.
struct HomeContext {
  enum class Kind : uint8_t {
    kAny,      // a pool's, which is of no context, or one that is not known
    kPrimary,  // a green one's is not known
    kMade,
    kEnded,  // nothing of it runs any more
  };
  Kind kind = Kind::kAny;
  CUdevice device = 0;       // of a primary one
  CUcontext made = nullptr;  // by the program

  [[nodiscard]] auto operator<=>(const HomeContext&) const = default;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_HOME_CONTEXT_H_
