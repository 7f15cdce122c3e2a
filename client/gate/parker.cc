// Parking: waits for a quiet GPU, and says that the memory may be taken.
#include "client/gate/parker.h"

#include <optional>

#include "absl/status/status.h"
#include "ipc/gate_word.h"

namespace gmb::internal {

using base::MutexLock;
using ipc::GateState;
using ipc::GateWord;
using ipc::LookAtGate;
using ipc::MoveGate;

Parker::Parker(ipc::GateCells* cells, GateOwner* owner,
               std::chrono::nanoseconds park_after, bool parks)
    : cells_(*cells), owner_(*owner), timer_(park_after) {
  {
    MutexLock lock(&mu_);
    timer_.SetOn(false);
  }
  if (parks) thread_ = std::thread([this] { Run(); });
}

Parker::~Parker() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
    parker_cv_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void Parker::SetParkAfter(std::chrono::nanoseconds park_after) {
  MutexLock lock(&mu_);
  timer_.SetParkAfter(park_after);
  woken_ = true;
  parker_cv_.NotifyOne();
}

void Parker::SetOn(bool on) {
  MutexLock lock(&mu_);
  timer_.SetOn(on);
  woken_ = true;
  parker_cv_.NotifyOne();
}

void Parker::Wake() {
  MutexLock lock(&mu_);
  woken_ = true;
  parker_cv_.NotifyOne();
}

void Parker::AwaitSyncEnd(TimePoint until) {
  MutexLock lock(&mu_);
  while (LookAtGate(cells_).state() == GateState::kSync) {
    if (!sync_cv_.WaitUntil(&mu_, until)) return;
  }
}

void Parker::SyncEnded() {
  MutexLock lock(&mu_);
  sync_cv_.NotifyAll();
}

bool Parker::AwaitNoSynchronize(TimePoint deadline) {
  MutexLock lock(&mu_);
  while (synchronizing_) {
    if (!sync_cv_.WaitUntil(&mu_, deadline)) return !synchronizing_;
  }
  return true;
}

void Parker::Run() {
  mu_.Lock();
  while (!stop_) {
    // Before the look, so that what changes after the look wakes us again.
    woken_ = false;
    const GateWord word = LookAtGate(cells_);
    const std::chrono::nanoseconds left_at(static_cast<int64_t>(
        cells_.left_at_ns.load(std::memory_order_relaxed)));
    const std::optional<TimePoint> next = timer_.NextLook(
        word, TimePoint(left_at), std::chrono::steady_clock::now());
    if (!next.has_value()) {
      mu_.Unlock();
      Park();
      mu_.Lock();
      continue;
    }
    while (!woken_ && !stop_) {
      if (*next == TimePoint::max()) {
        parker_cv_.Wait(&mu_);
      } else if (!parker_cv_.WaitUntil(&mu_, *next)) {
        break;
      }
    }
  }
  mu_.Unlock();
}

// Up before SYNC is, and down when the call is over: a scope that took the gate
// back leaves SYNC while the call goes on.
void Parker::Park() {
  {
    MutexLock lock(&mu_);
    synchronizing_ = true;
  }
  GateWord word = LookAtGate(cells_);
  bool began = false;
  while (const auto next = AfterSyncBegin(word)) {
    began = MoveGate(cells_, word, *next);
    if (began) break;
  }
  const bool quiet = began && owner_.Synchronize().ok();
  {
    MutexLock lock(&mu_);
    synchronizing_ = false;
  }
  if (began) {
    // The broker may pause meanwhile; nobody else writes SYNC, so this is ours.
    word = LookAtGate(cells_);
    while (const auto next = AfterSyncEnd(word, quiet)) {
      if (MoveGate(cells_, word, *next)) break;
    }
  }
  MutexLock lock(&mu_);
  if (began && quiet) timer_.ParkDone();
  if (began && !quiet) timer_.ParkFailed(std::chrono::steady_clock::now());
  sync_cv_.NotifyAll();
}

}  // namespace gmb::internal
