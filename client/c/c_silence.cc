// The C interface: an interpreter ends.
#include <chrono>
#include <cstdint>

#include "client/callback_turn.h"

// Not of the public interface: for the Python package. Of no use to who is in a
// callback. 0: one is under way still, after so long.
extern "C" __attribute__((visibility("default"))) int32_t gmb_internal_silence(
    int64_t wait_ms) {
  return gmb::internal::CallbackTurn::Silence(
             std::chrono::milliseconds(wait_ms))
             ? 1
             : 0;
}
