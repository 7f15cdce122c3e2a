// Work that is due at a time of day: what operators set for a time is over, a
// day of usage ends.
#include "broker/core/wall_timer.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gmb::broker {

WallTimer::WallTimer(const Clock* clock, std::function<void()> due)
    : clock_(clock), due_(std::move(due)), thread_([this] { Run(); }) {}

void WallTimer::Stop() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void WallTimer::Set(std::optional<absl::Time> next) {
  {
    base::MutexLock lock(&mu_);
    next_ = next;
  }
  wake_.NotifyAll();
}

void WallTimer::Run() {
  for (;;) {
    {
      base::MutexLock lock(&mu_);
      absl::Time seen = clock_->WallTime();
      while (!stopping_ &&
             (!next_.has_value() || clock_->WallTime() < *next_)) {
        // Set back: what is due then is reckoned anew by those who are called.
        const absl::Time now = clock_->WallTime();
        if (next_.has_value() && now < seen - absl::Seconds(1)) break;
        seen = now;
        absl::Duration wait = absl::Seconds(10);
        if (next_.has_value())
          wait = std::min(wait, *next_ - clock_->WallTime());
        wake_.WaitUntil(&mu_, std::chrono::steady_clock::now() +
                                  absl::ToChronoNanoseconds(wait));
      }
      if (stopping_) return;
      next_.reset();
    }
    due_();
  }
}

}  // namespace gmb::broker
