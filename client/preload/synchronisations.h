#ifndef GMB_CLIENT_PRELOAD_SYNCHRONISATIONS_H_
#define GMB_CLIENT_PRELOAD_SYNCHRONISATIONS_H_

#include <atomic>
#include <cstdint>

namespace gmb::preload {

// How often the program has waited for a stream, an event or a context. At these
// moments the driver gives back what a memory pool holds above its threshold.
// Lock-free.
class Synchronisations {
 public:
  static void Note() { Counted().fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] static uint64_t Count() {
    return Counted().load(std::memory_order_relaxed);
  }

 private:
  static std::atomic<uint64_t>& Counted() {
    static std::atomic<uint64_t> count = 0;
    return count;
  }
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_SYNCHRONISATIONS_H_
