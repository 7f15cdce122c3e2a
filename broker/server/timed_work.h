#ifndef GMB_BROKER_SERVER_TIMED_WORK_H_
#define GMB_BROKER_SERVER_TIMED_WORK_H_

#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "base/mutex.h"

namespace gmb::broker {

// One thread that carries out work when its time has come, for work that never
// waits. gRPC's own alarms start another thread whenever two are due at once,
// and keep it. Work that is not due when this is destroyed is dropped.
// Thread-safe.
class TimedWork {
 public:
  using Time = std::chrono::steady_clock::time_point;

  TimedWork();
  ~TimedWork();
  TimedWork(const TimedWork&) = delete;
  TimedWork& operator=(const TimedWork&) = delete;

  void At(Time time, std::function<void()> work);

 private:
  void Run();

  base::Mutex mu_;
  base::CondVar wake_;
  std::multimap<Time, std::function<void()>> due_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_TIMED_WORK_H_
