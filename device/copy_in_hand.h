#ifndef GMB_DEVICE_COPY_IN_HAND_H_
#define GMB_DEVICE_COPY_IN_HAND_H_

#include <atomic>
#include <cstdint>

namespace gmb::device {

// Names the owner (CopyJob::owner) of the bytes that the calling thread touches
// while one lives. A
// handler of SIGBUS reads it on the thread whose access failed, so it is a plain
// thread-local number.
class CopyInHand {
 public:
  explicit CopyInHand(uint64_t owner) {
    its().store(owner, std::memory_order_relaxed);
  }
  ~CopyInHand() { its().store(0, std::memory_order_relaxed); }
  CopyInHand(const CopyInHand&) = delete;
  CopyInHand& operator=(const CopyInHand&) = delete;

  // 0: nobody's.
  [[nodiscard]] static uint64_t Owner() {
    return its().load(std::memory_order_relaxed);
  }

 private:
  static std::atomic<uint64_t>& its() {
    static thread_local std::atomic<uint64_t> owner = 0;
    return owner;
  }
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_COPY_IN_HAND_H_
