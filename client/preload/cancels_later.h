#ifndef GMB_CLIENT_PRELOAD_CANCELS_LATER_H_
#define GMB_CLIENT_PRELOAD_CANCELS_LATER_H_

#include <pthread.h>

namespace gmb::preload {

// While it lives, its thread is not cancelled: who waits for the broker or for
// memory that is away holds what others wait for. The program's thread ends at
// its next chance after that.
class CancelsLater {
 public:
  CancelsLater() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~CancelsLater() { pthread_setcancelstate(before_, nullptr); }
  CancelsLater(const CancelsLater&) = delete;
  CancelsLater& operator=(const CancelsLater&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_CANCELS_LATER_H_
