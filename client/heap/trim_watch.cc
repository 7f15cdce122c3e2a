// Trimming: tells the broker how much the heap could give back.
#include "client/heap/trim_watch.h"

#include <utility>

namespace gmb::internal {

TrimWatch::TrimWatch(std::function<void(uint64_t bytes)> tell,
                     std::function<void()> rest)
    : tell_(std::move(tell)),
      rest_(std::move(rest)),
      thread_([this] { Run(); }) {}

TrimWatch::~TrimWatch() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
}

void TrimWatch::Repeat() {
  {
    base::MutexLock lock(&mu_);
    repeat_ = true;
  }
  if (!changed_.exchange(true, std::memory_order_acq_rel)) Wake();
}

void TrimWatch::Wake() {
  base::MutexLock lock(&mu_);
  wake_.NotifyAll();
}

bool TrimWatch::Sleep(
    std::optional<std::chrono::steady_clock::time_point> until) {
  base::MutexLock lock(&mu_);
  while (!stopping_ && !changed_.load(std::memory_order_acquire)) {
    if (!until.has_value()) {
      wake_.Wait(&mu_);
    } else if (!wake_.WaitUntil(&mu_, *until)) {
      break;
    }
  }
  return !stopping_;
}

void TrimWatch::Run() {
  using SteadyClock = std::chrono::steady_clock;
  uint64_t told = 0;
  std::optional<SteadyClock::time_point> rest_at;
  while (Sleep(rest_at)) {
    if (rest_at.has_value() && SteadyClock::now() >= *rest_at) {
      rest_at.reset();
      rest_();
      continue;
    }
    bool again = false;
    {
      base::MutexLock lock(&mu_);
      // First: a thread that says something from here on finds it false, and
      // wakes this one.
      changed_.exchange(false, std::memory_order_acq_rel);
      again = std::exchange(repeat_, false);
    }
    const uint64_t bytes = bytes_.load(std::memory_order_relaxed);
    if (bytes != told || again) {
      told = bytes;
      tell_(bytes);
    }
    const SteadyClock::time_point now = SteadyClock::now();
    if (rest_ != nullptr && !rest_at.has_value()) rest_at = now + kRest;
    base::MutexLock lock(&mu_);
    while (!stopping_ && wake_.WaitUntil(&mu_, now + kPause)) {
    }
    if (stopping_) return;
  }
}

}  // namespace gmb::internal
