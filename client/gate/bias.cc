// The slow half of the biased gate: closing it, and putting it back.
#include "client/gate/bias.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

#include "client/gate/bias_slots.h"
#include "client/gate/signals_blocked.h"
#include "ipc/gate_word.h"

namespace gmb::internal {
namespace {

using base::MutexLock;
using ipc::GateState;
using ipc::GateWord;
using ipc::LookAtGate;
using ipc::MoveGate;

// For the child of a fork: the process's one, if there is one.
std::atomic<Bias*> the_bias{nullptr};

bool Membarrier(int command) {
  return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

Bias::Bias(ipc::GateCells* cells, Gate* gate, bool membarrier)
    : cells_(*cells), gate_(*gate) {
  if (!membarrier || !Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) {
    flags_.store(kBiasFenced);
  }
  static const int kRegistered =
      ::pthread_atfork(nullptr, nullptr, &Bias::OpenInChild);
  static_cast<void>(kRegistered);
  the_bias.store(this, std::memory_order_release);
  BiasSlots::SetLeaveOrdinary([] {
    if (Bias* const bias = the_bias.load(std::memory_order_acquire))
      bias->LeaveOrdinary();
  });
}

Bias::~Bias() {
  Bias* self = this;
  the_bias.compare_exchange_strong(self, nullptr);
}

// No idler is there, no session, and locks are in any state: calls are let in,
// and the page is not touched.
void Bias::OpenInChild() {
  Bias* const bias = the_bias.load(std::memory_order_acquire);
  if (bias != nullptr) bias->flags_.store(0, std::memory_order_relaxed);
}

absl::Status Bias::Begin() {
  const SignalsBlocked blocked;
  MutexLock lock(&mu_);
  if (standing_ || EnterStanding()) return absl::OkStatus();
  return absl::UnavailableError("gmb: the gate is not open");
}

// Where nobody is in this is the first scope, which others have to know of; but
// that happens in Begin alone, before the gate is on.
bool Bias::EnterStanding() {
  GateWord word = LookAtGate(cells_);
  while (const auto next = AfterEnter(word)) {
    if (MoveGate(cells_, word, *next)) return standing_ = true;
  }
  return false;
}

absl::Status Bias::EnterSlowly(BiasSlot& slot, absl::Duration wait,
                               Entry& entry) {
  if (FenceAndLook(slot, flags_)) return absl::OkStatus();
  // Meet closing. A call inside of a marked one keeps that mark: the one around
  // it may have looked at `closing` before this one, and counts on its mark.
  slot.mark.store(entry.was, std::memory_order_release);
  if (LetInForGood(slot)) return absl::OkStatus();
  absl::Status status = gate_.Enter(wait);
  if (!status.ok()) {
    return LetInForGood(slot) ? absl::OkStatus() : status;
  }
  entry.ordinary = true;
  ++slot.ordinary;
  PutBiasBack();
  return absl::OkStatus();
}

void Bias::LeaveOrdinary() {
  if (BiasSlot* const slot = BiasSlots::Mine()) --slot->ordinary;
  const std::chrono::nanoseconds now =
      std::chrono::steady_clock::now().time_since_epoch();
  slow_over_at_ns_.store(now.count(), std::memory_order_relaxed);
  slow_calls_.fetch_add(1, std::memory_order_release);
  gate_.Leave();
}

Bias::SlowCalls Bias::slow_calls() const {
  const uint64_t count = slow_calls_.load(std::memory_order_acquire);
  return {count, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(
                     slow_over_at_ns_.load(std::memory_order_relaxed)))};
}

bool Bias::away() const {
  return LookAtGate(cells_).state() == GateState::kClosed;
}

bool Bias::LetInForGood(BiasSlot& slot) const {
  if (!over()) return false;
  if (away()) return false;
  slot.mark.store(BiasSlot::kLetIn, std::memory_order_relaxed);
  return true;
}

// By a caller that has an ordinary scope.
void Bias::PutBiasBack() {
  const SignalsBlocked blocked;
  MutexLock lock(&mu_);
  // The pause goes on; the ordinary scope is enough for this call.
  if (LookAtGate(cells_).paused()) return;
  if (standing_ || EnterStanding()) Open();
}

void Bias::Close() { flags_.fetch_or(kBiasClosing); }

bool Bias::Fence() {
  if ((flags_.load(std::memory_order_relaxed) & kBiasFenced) != 0) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return true;
  }
  return Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

bool Bias::LeaveStanding(std::chrono::steady_clock::time_point quiet_since) {
  const SignalsBlocked blocked;
  MutexLock lock(&mu_);
  if (!closing() || over()) return false;
  if (!standing_) return true;
  const std::chrono::nanoseconds left_at = quiet_since.time_since_epoch();
  GateWord word = LookAtGate(cells_);
  while (const auto next = AfterLeave(word)) {
    if (next->scopes() > 0) return false;  // it stays beside the program's
    cells_.left_at_ns.store(static_cast<uint64_t>(left_at.count()),
                            std::memory_order_relaxed);
    if (MoveGate(cells_, word, *next)) {
      standing_ = false;
      return true;
    }
  }
  return false;  // a page that somebody else has written over
}

bool Bias::OthersAreIn() {
  const SignalsBlocked blocked;
  MutexLock lock(&mu_);
  return LookAtGate(cells_).scopes() > (standing_ ? 1u : 0u);
}

// A scope of the program may wait for calls of other threads, and keeps the
// memory here: so the standing one comes in beside it whatever the pause says.
// With nobody in `closing` stays: the next caller puts both right.
void Bias::GiveUp() {
  const SignalsBlocked blocked;
  MutexLock lock(&mu_);
  GateWord word = LookAtGate(cells_);
  while (!standing_ && word.state() == GateState::kOpen && word.scopes() > 0 &&
         word.scopes() < GateWord::kMaxScopes) {
    const GateWord next(GateState::kOpen, word.scopes() + 1, word.epoch(),
                        word.paused());
    standing_ = MoveGate(cells_, word, next);
  }
  if (standing_) Open();
}

void Bias::End() {
  const SignalsBlocked blocked;
  MutexLock lock(&mu_);
  GateWord word = LookAtGate(cells_);
  while (!standing_ && word.state() != GateState::kClosed) {
    // Out of any state and whatever the pause says: nobody takes the memory
    // any more.
    const GateWord next(GateState::kOpen, word.scopes() + 1,
                        word.epoch() + (word.scopes() == 0 ? 1 : 0),
                        word.paused());
    standing_ = MoveGate(cells_, word, next);
  }
  // After the scope is in: nobody takes the memory then.
  over_.store(true, std::memory_order_release);
  if (standing_) Open();
}

}  // namespace gmb::internal
