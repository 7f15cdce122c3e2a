#ifndef GMB_CLIENT_PRELOAD_CAPTURES_H_
#define GMB_CLIENT_PRELOAD_CAPTURES_H_

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// Giving memory back synchronises the device, and synchronising destroys every
// capture that is under way. So the two take turns: no capture begins while
// memory goes back, and what is freed during one goes back after it. The end of
// a context takes its turn as the beginning of a capture that is not begun: its
// events may be what is waited for. Thread-safe.
class Captures {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Waits for those who synchronise. Then to be called: Began or DidNotBegin.
  void AwaitTurn();
  // `context` is the stream's, and `device` is that one's; null when the driver
  // does not say.
  void Began(CUstream stream, CUcontext context,
             std::optional<CUdevice> device = {});
  void DidNotBegin();
  void Ended(CUstream stream, CUcontext context);
  // Its streams went along, and their captures.
  void ContextEnded(CUcontext context);
  // The same of the device's primary one, whose name is not known: it is none of
  // `others`.
  void PrimaryEnded(CUdevice device, const std::set<CUcontext>& others);

  // False while there is a capture, or one begins, or a context ends; after
  // true, EndSynchronizing is owed. Beginnings and ends are waited for up to
  // `until`: they are short, unless the driver waits there for a lock that the
  // caller has. Not to be called by who has taken such a turn.
  [[nodiscard]] bool BeginSynchronizing(TimePoint until = {});
  void EndSynchronizing();

  // Of this process, on any stream.
  [[nodiscard]] bool Any();

 private:
  [[nodiscard]] bool Capturing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return beginning_ > 0 || !streams_.empty();
  }

  base::Mutex mu_;
  base::CondVar quiet_;
  base::CondVar begun_;  // or did not, or a context has ended
  int synchronizing_ ABSL_GUARDED_BY(mu_) = 0;
  int beginning_ ABSL_GUARDED_BY(mu_) = 0;
  // Those that are captured, with the devices that are known.
  // CU_STREAM_PER_THREAD once for each thread that captures its own.
  std::multimap<std::pair<CUcontext, CUstream>, std::optional<CUdevice>>
      streams_ ABSL_GUARDED_BY(mu_);
};

// BeginSynchronizing and EndSynchronizing.
class SynchronizingTurn {
 public:
  explicit SynchronizingTurn(Captures* captures, Captures::TimePoint until = {})
      : captures_(captures), granted_(captures->BeginSynchronizing(until)) {}
  ~SynchronizingTurn() {
    if (granted_) captures_->EndSynchronizing();
  }
  SynchronizingTurn(const SynchronizingTurn&) = delete;
  SynchronizingTurn& operator=(const SynchronizingTurn&) = delete;

  [[nodiscard]] bool granted() const { return granted_; }

 private:
  Captures* const captures_;
  const bool granted_;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_CAPTURES_H_
