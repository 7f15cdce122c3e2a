#ifndef GMB_CLIENT_GATE_BIAS_H_
#define GMB_CLIENT_GATE_BIAS_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/gate/bias_slot.h"
#include "client/gate/gate.h"
#include "ipc/gate_page.h"

namespace gmb::internal {

// A gate that costs no locked instruction: one scope stands for all calls of
// the process while it is active, and a call only marks its thread's slot. When
// the idler has closed the bias, calls enter the ordinary gate, and the first
// one puts the bias back. docs/biased_gate.md; its steps have the names that
// they have in tests/client/gate/biased_model.h.
//
// Thread-safe. In a forked child every call is let in.
class Bias {
 public:
  // `gate` outlives it, and is one that does not park by itself; `cells` are
  // those of its page. Nobody calls before this has returned. `membarrier`:
  // whether to ask the system for it.
  Bias(ipc::GateCells* cells, Gate* gate, bool membarrier = true);
  Bias(const Bias&) = delete;
  Bias& operator=(const Bias&) = delete;
  ~Bias();

  // The standing scope comes in; then the gate can be turned on. Fails where
  // the gate is paused or not open.
  [[nodiscard]] absl::Status Begin();

  // A call of the driver that touches memory goes between these two, on one
  // thread; `slot` is the thread's. Calls nest. A call that is not let in at
  // once waits, and fails, as Gate::Enter does; UNAVAILABLE when the session is
  // over with the memory away.
  struct Entry {
    uint32_t was;  // the mark of the call around this one
    bool ordinary;
  };
  [[nodiscard]] absl::Status Enter(BiasSlot& slot, absl::Duration wait,
                                   Entry& entry) {
    entry.ordinary = false;
    if (MarkAndLook(slot, flags_, entry.was)) [[likely]] {
      return absl::OkStatus();
    }
    return EnterSlowly(slot, wait, entry);
  }
  // The rest of Enter for a caller that did MarkAndLook on flags() itself.
  // After an error the slot has the mark that was found.
  [[nodiscard]] absl::Status EnterSlowly(BiasSlot& slot, absl::Duration wait,
                                         Entry& entry);
  [[nodiscard]] const std::atomic<uint32_t>& flags() const { return flags_; }
  void Leave(BiasSlot& slot, const Entry& entry) {
    CountAndUnmark(slot, entry.was);
    if (entry.ordinary) [[unlikely]]
      LeaveOrdinary();
  }
  void LeaveOrdinary();

  // The session is over. Where the memory is there it stays, and every call is
  // let in from now on; where it is away every call fails.
  void End();

  // The rest is the idler's, on one thread.
  void Close();
  // Every mark that was made before `closing` was seen is seen now. False: the
  // system refuses, and nothing is known of the marks.
  [[nodiscard]] bool Fence();
  // Whether a scope is in beside the standing one.
  [[nodiscard]] bool OthersAreIn();
  // The standing scope goes out, unless a caller has opened the bias again or
  // another scope is in. The broker is told that the last call was over at
  // `quiet_since`.
  [[nodiscard]] bool LeaveStanding(
      std::chrono::steady_clock::time_point quiet_since);
  // Calls go on, unless the memory may be taken or is away.
  void GiveUp();
  // The idler has left SYNC.
  void SyncEnded() { gate_.SyncEnded(); }
  // Calls that came in by an ordinary scope, and when the last was over.
  struct SlowCalls {
    uint64_t count;
    std::chrono::steady_clock::time_point over_at;
  };
  [[nodiscard]] SlowCalls slow_calls() const;
  // Ordinary scopes that went out.
  [[nodiscard]] uint64_t scopes_left() const { return gate_.scopes_left(); }

  [[nodiscard]] bool closing() const {
    return (flags_.load(std::memory_order_acquire) & kBiasClosing) != 0;
  }
  [[nodiscard]] bool over() const {
    return over_.load(std::memory_order_acquire);
  }
  // The broker has the memory.
  [[nodiscard]] bool away() const;

 private:
  static void OpenInChild();

  bool LetInForGood(BiasSlot& slot) const;
  void PutBiasBack();
  void Open() { flags_.fetch_and(~uint32_t{kBiasClosing}); }
  bool EnterStanding() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::atomic<uint32_t> flags_{0};
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> slow_calls_{0};
  std::atomic<int64_t> slow_over_at_ns_{0};
  ipc::GateCells& cells_;
  Gate& gate_;
  // "Bias" in the docs. Held with signals blocked, and never across a call of
  // the driver or a request.
  base::Mutex mu_;
  bool standing_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_GATE_BIAS_H_
