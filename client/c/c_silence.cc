// The C interface: an interpreter ends.
#include <chrono>
#include <cstdint>

#include "client/callback_turn.h"

// Not of the public interface: for the Python package. Of no use to who is in a
// callback.
extern "C" __attribute__((visibility("default"))) void gmb_internal_silence(
    int64_t wait_ms) {
  static_cast<void>(
      gmb::internal::CallbackTurn::Silence(std::chrono::milliseconds(wait_ms)));
}
