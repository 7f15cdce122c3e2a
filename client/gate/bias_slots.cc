// The list of slots: taken by threads, read by the idler, never freed.
#include "client/gate/bias_slots.h"

#include <pthread.h>

#include <new>

namespace gmb::internal {
namespace {

std::atomic<BiasSlot*> first_slot{nullptr};

// Destructors of thread-locals would come before those of other libraries,
// which may still call; a key's come last, and again when it was set anew.
bool AtThreadEnd(void (*give_back)(void*), BiasSlot* slot) {
  static pthread_key_t key;
  static const bool kMade = pthread_key_create(&key, give_back) == 0;
  return kMade && pthread_setspecific(key, slot) == 0;
}

BiasSlot* TakeOver() {
  for (BiasSlot* slot = first_slot.load(std::memory_order_acquire);
       slot != nullptr; slot = slot->next) {
    bool taken = false;
    if (slot->taken.compare_exchange_strong(taken, true,
                                            std::memory_order_acq_rel)) {
      return slot;
    }
  }
  return nullptr;
}

}  // namespace

BiasSlot* BiasSlots::Take() {
  BiasSlot* slot = TakeOver();
  if (slot == nullptr) {
    slot = new (std::nothrow) BiasSlot;
    if (slot == nullptr) return nullptr;
    slot->next = first_slot.load(std::memory_order_relaxed);
    // A locked instruction, before the first mark: the idler's membarrier comes
    // before it, and the call sees `closing`, or after it, and the idler sees
    // the slot.
    while (!first_slot.compare_exchange_weak(slot->next, slot,
                                             std::memory_order_seq_cst)) {
    }
  }
  mine = slot;
  // Where that fails the slot is not used again.
  static_cast<void>(AtThreadEnd(GiveBack, slot));
  return slot;
}

// At the thread's end. One that ended inside of the driver's function
// (pthread_exit, a cancellation) has left its call without saying so: what it
// gave the GPU is seen by whoever asks that.
void BiasSlots::GiveBack(void* slot) {
  auto& given = *static_cast<BiasSlot*>(slot);
  if (given.mark.load(std::memory_order_relaxed) != BiasSlot::kOut)
    CountAndUnmark(given, BiasSlot::kOut);
  void (*const leave)() = leave_ordinary.load(std::memory_order_acquire);
  for (uint32_t i = given.ordinary; i > 0 && leave != nullptr; --i) leave();
  mine = nullptr;
  given.taken.store(false, std::memory_order_release);
}

BiasSlots::Seen BiasSlots::Look() {
  Seen seen;
  for (const BiasSlot* slot = first_slot.load(std::memory_order_acquire);
       slot != nullptr; slot = slot->next) {
    const uint32_t mark = slot->mark.load(std::memory_order_acquire);
    if (mark != BiasSlot::kOut) ++seen.marked;
    seen.calls += slot->count.load(std::memory_order_acquire);
  }
  return seen;
}

}  // namespace gmb::internal
