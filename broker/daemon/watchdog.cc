// A broker that hangs is ended by the service manager, and the next one goes on
// with what the keeper has.
#include "broker/daemon/watchdog.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/log/logging.h"

namespace gmb::broker {

Watchdog::Watchdog(const ipc::ServiceManager* manager, Look look)
    : manager_(manager),
      look_(std::move(look)),
      interval_(manager->watchdog() / 4) {
  if (interval_ > absl::ZeroDuration())
    thread_ = std::thread([this] { Run(); });
}

Watchdog::~Watchdog() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Watchdog::Begin() {
  base::MutexLock lock(&mu_);
  begun_ = true;
  wake_.NotifyAll();
}

void Watchdog::Run() {
  if (!WaitForBegin()) return;
  absl::Duration pause;
  do {
    pause = interval_;
    absl::Status alive = look_(interval_);
    if (alive.ok()) alive = manager_->Say("WATCHDOG=1");
    if (!alive.ok()) {
      pause = interval_ / 8;  // there is time for a few more looks
      LogEvent(LogLevel::kWarning, "not_alive",
               {{"message", absl::StrCat("the service manager is not told that "
                                         "this broker is alive, and ends it "
                                         "if that goes on: ",
                                         alive.message())}});
    }
  } while (WaitForNext(pause));
}

bool Watchdog::WaitForBegin() {
  base::MutexLock lock(&mu_);
  while (!begun_ && !stopping_) wake_.Wait(&mu_);
  return !stopping_;
}

bool Watchdog::WaitForNext(absl::Duration pause) {
  const auto next =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(pause);
  base::MutexLock lock(&mu_);
  while (!stopping_ && wake_.WaitUntil(&mu_, next)) {
  }
  return !stopping_;
}

}  // namespace gmb::broker
