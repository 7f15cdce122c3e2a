// The keeper died, or cannot be found any more, and the broker lives: another
// one gets everything.
#include "broker/keeping/keeper_watch.h"

#include <utility>

namespace gmb::broker {

KeeperWatch::KeeperWatch(KeeperClient* client, Calls calls,
                         std::chrono::milliseconds period)
    : client_(client),
      calls_(std::move(calls)),
      period_(period),
      thread_([this] { Run(); }) {}

KeeperWatch::~KeeperWatch() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
}

void KeeperWatch::Run() {
  while (true) {
    Look();
    base::MutexLock lock(&mu_);
    const auto next = std::chrono::steady_clock::now() + period_;
    while (!stopping_ && wake_.WaitUntil(&mu_, next)) {
    }
    if (stopping_) return;
  }
}

void KeeperWatch::Look() {
  calls_.look();
  if (!client_->lost() || client_->displaced()) client_->CheckPlace();
  if (!client_->lost()) {
    // The directory of one that was displaced is back.
    if (std::exchange(lost_, false)) calls_.found();
    return;
  }
  if (!lost_) calls_.lost();
  lost_ = true;
  if (!client_->Refill().ok()) return;
  lost_ = false;
  calls_.found();
}

}  // namespace gmb::broker
