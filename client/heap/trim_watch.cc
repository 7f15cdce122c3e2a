// Trimming: tells the broker how much the heap could give back.
#include "client/heap/trim_watch.h"

#include <utility>

namespace gmb::internal {

TrimWatch::TrimWatch(std::function<void(uint64_t bytes)> tell)
    : tell_(std::move(tell)), thread_([this] { Run(); }) {}

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

void TrimWatch::Run() {
  uint64_t told = 0;
  for (;;) {
    bool again = false;
    {
      base::MutexLock lock(&mu_);
      while (!stopping_ && !changed_.load(std::memory_order_acquire)) {
        wake_.Wait(&mu_);
      }
      if (stopping_) return;
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
    base::MutexLock lock(&mu_);
    const auto due = std::chrono::steady_clock::now() + kPause;
    while (!stopping_ && wake_.WaitUntil(&mu_, due)) {
    }
    if (stopping_) return;
  }
}

}  // namespace gmb::internal
