// Tells the core that time has passed: deadlines of leases and requests are
// over without anybody's call.
#include "broker/core/ticker.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gmb::broker {

Ticker::Ticker(std::function<quota::Instant()> tick)
    : tick_(std::move(tick)), thread_([this] { Run(); }) {}

void Ticker::Stop() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Ticker::Wake() {
  base::MutexLock lock(&mu_);
  woken_ = true;
  wake_.NotifyOne();
}

void Ticker::Run() {
  // An hour at most: a deadline that far away need not fit every clock.
  constexpr std::chrono::hours kLongest(1);
  while (true) {
    const quota::Instant due = tick_();
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::steady_clock::time_point wanted{
        std::chrono::nanoseconds(due.ns)};
    const auto until = std::min(wanted, now + kLongest);
    base::MutexLock lock(&mu_);
    while (!woken_ && !stopping_ && std::chrono::steady_clock::now() < until) {
      wake_.WaitUntil(&mu_, until);
    }
    woken_ = false;
    if (stopping_) return;
  }
}

}  // namespace gmb::broker
