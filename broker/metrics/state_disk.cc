// Metrics: whether operators' changes can be stored.
#include "broker/metrics/state_disk.h"

#include <utility>

namespace gmb::broker::metrics {

StateDisk::StateDisk(std::function<absl::Status()> probe, const Clock* clock)
    : probe_(std::move(probe)), clock_(clock), thread_([this] { Run(); }) {}

StateDisk::~StateDisk() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
}

std::optional<StateDisk::Reading> StateDisk::Latest() {
  base::MutexLock lock(&mu_);
  const auto now = std::chrono::steady_clock::now();
  if (!asked_ && now >= next_) {
    asked_ = true;
    wake_.NotifyOne();
  }
  return latest_;
}

void StateDisk::Run() {
  for (;;) {
    {
      base::MutexLock lock(&mu_);
      while (!asked_ && !stopping_) wake_.Wait(&mu_);
      if (stopping_) return;
    }
    const bool ok = probe_().ok();
    base::MutexLock lock(&mu_);
    latest_ = Reading{.ok = ok, .at = clock_->WallTime()};
    next_ = std::chrono::steady_clock::now() + kEvery;
    asked_ = false;
  }
}

}  // namespace gmb::broker::metrics
