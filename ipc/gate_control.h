#ifndef GMB_IPC_GATE_CONTROL_H_
#define GMB_IPC_GATE_CONTROL_H_

#include <atomic>

#include "ipc/gate_page.h"
#include "ipc/gate_word.h"

namespace gmb::ipc {

// The broker's moves. Each is a single atomic instruction, also while the
// client writes: no loop, no system call, no wait. Thread-safe.

// PARKED -> CLOSED, if the word is still `seen`. Then no scope is in, the GPU
// is quiet (if the client keeps the rules), and what it wrote can be read.
[[nodiscard]] inline bool CloseGate(GateCells& cells, GateWord seen) {
  const auto next = AfterClose(seen);
  return next.has_value() && MoveGate(cells, seen, *next);
}

// CLOSED -> PARKED, and the end of any pause. `closed` is the word as the
// broker left it, or as it found it when it took the page over. False: the
// client has written over it.
[[nodiscard]] inline bool ReopenGate(GateCells& cells, GateWord closed) {
  GateWord seen = LookAtGate(cells);
  const auto next = AfterReopen(seen);
  return next.has_value() && AfterWithdraw(seen) == AfterWithdraw(closed) &&
         MoveGate(cells, seen, *next);
}

// Setting a bit cannot fail, however fast scopes come and go: a
// compare-and-swap without a loop could do so for ever.
inline void PauseGate(GateCells& cells) {
  cells.word.fetch_or(GateWord::kPauseBit, std::memory_order_acq_rel);
}
inline void WithdrawPause(GateCells& cells) {
  cells.word.fetch_and(~GateWord::kPauseBit, std::memory_order_acq_rel);
}

// For a copy made ahead: whether what was read since the gate was seen parked
// in `epoch` is true. The fence keeps the reads before the look.
[[nodiscard]] inline bool CopyHolds(const GateCells& cells, uint64_t epoch) {
  std::atomic_thread_fence(std::memory_order_acquire);
  return CopyIsTrue(GateWord(cells.word.load(std::memory_order_relaxed)),
                    epoch);
}

}  // namespace gmb::ipc

#endif  // GMB_IPC_GATE_CONTROL_H_
