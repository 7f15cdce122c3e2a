#ifndef GMB_BASE_CANCELS_LATER_H_
#define GMB_BASE_CANCELS_LATER_H_

#include <pthread.h>

namespace gmb::base {

// While it lives, its thread is not cancelled (pthread_cancel): who waits for the
// broker, or for memory that is away, holds what others wait for. The thread ends
// at its next chance after that.
class CancelsLater {
 public:
  CancelsLater() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~CancelsLater() { pthread_setcancelstate(before_, nullptr); }
  CancelsLater(const CancelsLater&) = delete;
  CancelsLater& operator=(const CancelsLater&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace gmb::base

#endif  // GMB_BASE_CANCELS_LATER_H_
