#ifndef GMB_CLIENT_HEAP_BRIEF_MUTEX_H_
#define GMB_CLIENT_HEAP_BRIEF_MUTEX_H_

#include <atomic>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace gmb::internal {

// A mutex that is held for well under a microsecond at a time. A thread that
// finds it held looks again for some microseconds before it sleeps. To be put
// to sleep and woken costs tens of times the work that the holder has left, and
// with many threads all of them would be. Where there are more threads than
// cores they sleep after that.
class ABSL_LOCKABLE BriefMutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (!Try()) LockContended();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    held_.store(false, std::memory_order_relaxed);
    mu_.unlock();
  }

 private:
  bool Try() {
    if (!mu_.try_lock()) return false;
    held_.store(true, std::memory_order_relaxed);
    return true;
  }
  void LockContended();

  std::mutex mu_;
  // As mu_, but to be read without taking its cache line from the holder. A
  // hint only.
  std::atomic<bool> held_ = false;
};

class ABSL_SCOPED_LOCKABLE BriefLock {
 public:
  explicit BriefLock(BriefMutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu)
      : mu_(mu) {
    mu_->Lock();
  }
  ~BriefLock() ABSL_UNLOCK_FUNCTION() { mu_->Unlock(); }
  BriefLock(const BriefLock&) = delete;
  BriefLock& operator=(const BriefLock&) = delete;

 private:
  BriefMutex* const mu_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_BRIEF_MUTEX_H_
