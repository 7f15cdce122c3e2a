// Streams that are to be read again, or given up, in a while.
#include "broker/server/timed_work.h"

#include <utility>

namespace gmb::broker {

TimedWork::TimedWork() : thread_([this] { Run(); }) {}

TimedWork::~TimedWork() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void TimedWork::At(Time time, std::function<void()> work) {
  bool is_next = false;
  {
    base::MutexLock lock(&mu_);
    const auto added = due_.emplace(time, std::move(work));
    is_next = added == due_.begin();
  }
  if (is_next) wake_.NotifyOne();
}

void TimedWork::Run() {
  while (true) {
    std::function<void()> work;
    {
      base::MutexLock lock(&mu_);
      while (!stopping_ &&
             (due_.empty() ||
              due_.begin()->first > std::chrono::steady_clock::now())) {
        if (due_.empty()) {
          wake_.Wait(&mu_);
        } else {
          wake_.WaitUntil(&mu_, due_.begin()->first);
        }
      }
      if (stopping_) return;
      work = std::move(due_.begin()->second);
      due_.erase(due_.begin());
    }
    work();
  }
}

}  // namespace gmb::broker
