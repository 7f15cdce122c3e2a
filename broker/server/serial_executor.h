#ifndef GMB_BROKER_SERVER_SERIAL_EXECUTOR_H_
#define GMB_BROKER_SERVER_SERIAL_EXECUTOR_H_

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace gmb::broker {

// One thread that carries out work, first in, first out: for work that waits
// for the disk and must not hold up gRPC's threads. Work that is queued when it
// is destroyed is still done.
class SerialExecutor {
 public:
  SerialExecutor();
  ~SerialExecutor();
  void Post(std::function<void()> work);

 private:
  void Run();

  base::Mutex mu_;
  base::CondVar wake_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_SERIAL_EXECUTOR_H_
