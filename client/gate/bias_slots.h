#ifndef GMB_CLIENT_GATE_BIAS_SLOTS_H_
#define GMB_CLIENT_GATE_BIAS_SLOTS_H_

#include <atomic>
#include <cstdint>

#include "client/gate/bias_slot.h"

namespace gmb::internal {

// The slots of the process's threads. They are never freed, so that the idler
// can read that of a thread which ends meanwhile; another thread takes it over,
// and goes on counting where it is. Thread-safe.
class BiasSlots {
 public:
  // The calling thread's. Null when there is no memory for it.
  static BiasSlot* Mine() {
    BiasSlot* const slot = mine;
    return slot != nullptr ? slot : Take();
  }

  struct Seen {
    int marked = 0;      // slots whose call is not over
    uint64_t calls = 0;  // that are, of all slots; equal sums: none was counted
  };
  // Of each slot the mark, then the count. The slots are listed at the call.
  [[nodiscard]] static Seen Look();

  // Leaves one ordinary scope of the calling thread, which ends inside of its
  // call; the scope is counted out of the slot.
  static void SetLeaveOrdinary(void (*leave)()) { leave_ordinary = leave; }

 private:
  static BiasSlot* Take();
  static void GiveBack(void* slot);

  static inline constinit std::atomic<void (*)()> leave_ordinary{nullptr};

  // Found with one instruction; a library that is loaded late gets its place
  // in the surplus that the loader keeps.
  [[gnu::tls_model(
      "initial-exec")]] static inline constinit thread_local BiasSlot* mine =
      nullptr;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_GATE_BIAS_SLOTS_H_
