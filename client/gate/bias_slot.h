#ifndef GMB_CLIENT_GATE_BIAS_SLOT_H_
#define GMB_CLIENT_GATE_BIAS_SLOT_H_

#include <atomic>
#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#define GMB_BIAS_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GMB_BIAS_UNDER_TSAN 1
#endif
#endif

namespace gmb::internal {

// Where a thread says that it is in a call. docs/biased_gate.md has the whole
// of it. Only that thread writes the mark and the count, the idler reads them.
struct alignas(64) BiasSlot {
  enum Mark : uint32_t {
    kOut = 0,
    kMarked = 1,  // in a call that has not been let in yet
    kLetIn = 2,
  };
  std::atomic<uint32_t> mark{kOut};
  std::atomic<uint64_t> count{0};  // calls that are over; only grows
  // Of its thread alone: ordinary scopes that its calls are in.
  uint32_t ordinary = 0;

  // Of BiasSlots alone.
  std::atomic<bool> taken{true};
  BiasSlot* next = nullptr;
};

// The bits that callers look at: a call is let in at once where no bit is set.
enum BiasFlags : uint32_t {
  kBiasClosing = 1,
  kBiasFenced = 2,  // membarrier is refused: each call fences itself
};

// One instruction: a signal handler whose calls count between a load and a
// store would have its counts taken back.
inline void CountCall(BiasSlot& slot) {
#if defined(__x86_64__) && !defined(GMB_BIAS_UNDER_TSAN)
  static_assert(sizeof(slot.count) == 8);
  // Without a lock: only this thread writes. Stores are seen in order.
  asm volatile("addq $1, %0"
               : "+m"(reinterpret_cast<uint64_t&>(slot.count))
               :
               : "cc", "memory");
#else
  slot.count.fetch_add(1, std::memory_order_release);
#endif
}

// "Mark", "look at closing", "let in". False: the way in is a slow one, and the
// mark is in. `was` is the mark that was found, for Unmark.
inline bool MarkAndLook(BiasSlot& slot, const std::atomic<uint32_t>& flags,
                        uint32_t& was) {
  was = slot.mark.load(std::memory_order_relaxed);
  // The call around this one was let in, and stays in longer. A mere mark does
  // not do: that call has not looked at `closing` yet.
  if (was == BiasSlot::kLetIn) return true;
  slot.mark.store(BiasSlot::kMarked, std::memory_order_relaxed);
  // The processor may still look first. The idler's membarrier sees to that.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (flags.load(std::memory_order_acquire) != 0) return false;
  slot.mark.store(BiasSlot::kLetIn, std::memory_order_relaxed);
  return true;
}

// The same where membarrier is refused, after a MarkAndLook that found nothing
// but that: the caller's own fence is between its mark and its look.
inline bool FenceAndLook(BiasSlot& slot, const std::atomic<uint32_t>& flags) {
  if (flags.load(std::memory_order_acquire) != kBiasFenced) return false;
  slot.mark.store(BiasSlot::kMarked, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (flags.load(std::memory_order_acquire) != kBiasFenced) return false;
  slot.mark.store(BiasSlot::kLetIn, std::memory_order_relaxed);
  return true;
}

// Of a call that gives the GPU no work, and so does not count.
inline void Unmark(BiasSlot& slot, uint32_t was) {
  slot.mark.store(was, std::memory_order_release);
}

// "Count", "unmark", in this order: who sees the mark gone sees the count.
inline void CountAndUnmark(BiasSlot& slot, uint32_t was) {
  CountCall(slot);
  Unmark(slot, was);
}

}  // namespace gmb::internal

#undef GMB_BIAS_UNDER_TSAN

#endif  // GMB_CLIENT_GATE_BIAS_SLOT_H_
