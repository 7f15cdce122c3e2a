// Operators' changes: one after the other, on a thread that may wait.
#include "broker/server/serial_executor.h"

#include <utility>

namespace gmb::broker {

SerialExecutor::SerialExecutor() : thread_([this] { Run(); }) {}

SerialExecutor::~SerialExecutor() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
}

void SerialExecutor::Post(std::function<void()> work) {
  base::MutexLock lock(&mu_);
  queue_.push_back(std::move(work));
  wake_.NotifyOne();
}

void SerialExecutor::Run() {
  while (true) {
    std::function<void()> work;
    {
      base::MutexLock lock(&mu_);
      while (queue_.empty() && !stopping_) wake_.Wait(&mu_);
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace gmb::broker
