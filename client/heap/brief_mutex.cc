// The heap's lock, for threads that find it held.
#include "client/heap/brief_mutex.h"

#include <algorithm>
#include <thread>

namespace gmb::internal {
namespace {

// 10 to 25 us, as the processor's pause is short or long. Looks grow apart, so
// that the holder, which comes back soon, does several turns with the heap's
// lines in its cache.
constexpr int kLooks = 12;
constexpr int kFirstPauses = 2;
constexpr int kMostPauses = 64;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#else
  std::this_thread::yield();
#endif
}

}  // namespace

void BriefMutex::LockContended() {
  int pauses = kFirstPauses;
  for (int look = 0; look < kLooks; ++look) {
    for (int i = 0; i < pauses; ++i) Pause();
    pauses = std::min(2 * pauses, kMostPauses);
    if (!held_.load(std::memory_order_relaxed) && Try()) return;
  }
  mu_.lock();
  held_.store(true, std::memory_order_relaxed);
}

}  // namespace gmb::internal
