// Scopes: where the program uses its leases. The client's side of the gate.
#include "client/gate/gate.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <utility>

#include "base/status_macros.h"
#include "client/gate/enter_step.h"
#include "client/gate/nesting.h"
#include "ipc/gate_word.h"

namespace gmb::internal {
namespace {

using ipc::GateState;
using ipc::GateWord;
using ipc::LookAtGate;
using Clock = std::chrono::steady_clock;

// A broker that keeps saying "try again" and closes again before we can.
constexpr int kMostRestores = 64;

uint64_t NextId() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::chrono::nanoseconds ToNanoseconds(absl::Duration duration) {
  // Far from the clock's end, so that sums cannot overflow.
  return absl::ToChronoNanoseconds(
      std::clamp(duration, absl::ZeroDuration(), absl::Hours(24 * 365)));
}

uint64_t CoarseNow() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

absl::Status TooLate() {
  return absl::DeadlineExceededError(
      "gmb: the session's memory did not come back in time; wait longer, or "
      "look at `gmb why`");
}

}  // namespace

struct Gate::Attempt {
  bool capture;
  TimePoint deadline;
  std::optional<TimePoint> patience_until{};  // once SYNC was seen
  int restores = 0;
};

Gate::Gate(ipc::GatePage page, GateOwner* owner, const GateOptions& options)
    : id_(NextId()),
      sync_patience_(ToNanoseconds(options.sync_patience)),
      parks_by_itself_(options.parks_by_itself),
      page_(std::move(page)),
      owner_(*owner),
      parker_(&page_.cells(), owner, ToNanoseconds(options.park_after),
              options.parks_by_itself) {}

Gate::~Gate() = default;

absl::Status Gate::Enter(absl::Duration wait) {
  if (fork_guard_.InChild()) return fork_guard_.Check();
  uint32_t* const depth = Nesting::Depth(id_);
  if (depth != nullptr && *depth > 0) {
    ++*depth;
    return absl::OkStatus();
  }
  if (depth == nullptr) {
    return absl::ResourceExhaustedError(
        "gmb: this thread is in scopes of too many sessions");
  }
  absl::Status status = EnterOutermost(false, wait);
  if (status.ok()) *depth = 1;
  return status;
}

absl::Status Gate::EnterCapture(absl::Duration wait) {
  const TimePoint deadline = Clock::now() + ToNanoseconds(wait);
  if (fork_guard_.InChild()) return fork_guard_.Check();
  if (depth() > 0) {
    // A scope that took the gate back is in beside the parker's call.
    GMB_RETURN_IF_ERROR(AwaitCaptureSafe(deadline));
    return Enter(wait);
  }
  uint32_t* const depth = Nesting::Depth(id_);
  if (depth == nullptr) return Enter(wait);  // which says why not
  GMB_RETURN_IF_ERROR(EnterOutermost(true, wait));
  if (absl::Status safe = AwaitCaptureSafe(deadline); !safe.ok()) {
    LeaveOutermost();
    return safe;
  }
  *depth = 1;
  return absl::OkStatus();
}

absl::Status Gate::AwaitCaptureSafe(TimePoint deadline) {
  if (parker_.AwaitNoSynchronize(deadline)) return absl::OkStatus();
  return absl::DeadlineExceededError(
      "gmb: a capture cannot begin while the GPU is waited for, and that takes "
      "longer than the capture would wait");
}

absl::Status Gate::EnterOutermost(bool capture, absl::Duration wait) {
  GateWord word = LookAtGate(page_.cells());
  while (const auto next = AfterEnter(word)) {
    if (TryMove(word, *next)) return absl::OkStatus();
  }
  Attempt attempt{capture, Clock::now() + ToNanoseconds(wait)};
  return EnterSlowly(attempt);
}

absl::Status Gate::EnterSlowly(Attempt& attempt) {
  for (;;) {
    GateWord word = LookAtGate(page_.cells());
    const bool patience_over =
        attempt.patience_until && Clock::now() >= *attempt.patience_until;
    const EnterStep step = NextEnterStep(word, attempt.capture, patience_over);
    switch (step.kind) {
      case EnterStep::Kind::kMove:
        if (TryMove(word, step.next)) return absl::OkStatus();
        break;
      case EnterStep::Kind::kWait:
        if (attempt.capture && Clock::now() >= attempt.deadline) {
          return TooLate();
        }
        if (!attempt.patience_until) {
          attempt.patience_until =
              std::min(Clock::now() + sync_patience_, attempt.deadline);
        }
        parker_.AwaitSyncEnd(attempt.capture ? attempt.deadline
                                             : *attempt.patience_until);
        break;
      case EnterStep::Kind::kRestore:
        GMB_RETURN_IF_ERROR(AskOwner(attempt));
        break;
      case EnterStep::Kind::kFull:
        return absl::ResourceExhaustedError("gmb: too many scopes are in");
    }
  }
}

absl::Status Gate::AskOwner(Attempt& attempt) {
  if (Clock::now() >= attempt.deadline) return TooLate();
  if (++attempt.restores > kMostRestores) {
    return absl::UnavailableError(
        "gmb: the session's memory was taken again each time it came back");
  }
  return owner_.Restore(attempt.deadline);
}

// One attempt to be in: the compare-and-swap, then the threads that have to
// know of it.
bool Gate::TryMove(GateWord& seen, GateWord next) {
  const GateState from = seen.state();
  if (from == GateState::kParked) {
    const std::chrono::nanoseconds now = Clock::now().time_since_epoch();
    page_.cells().woken_at_ns.store(static_cast<uint64_t>(now.count()),
                                    std::memory_order_relaxed);
  }
  if (!MoveGate(page_.cells(), seen, next)) return false;
  if (next.scopes() == 1) {
    // A copy made ahead is true while the epoch stands: what this scope writes
    // must not be seen before its epoch is.
    std::atomic_thread_fence(std::memory_order_release);
    if (from == GateState::kParked) {
      parker_.Wake();
      owner_.Woken();
    }
    if (from == GateState::kSync) parker_.SyncEnded();
  }
  return true;
}

bool Gate::Leave() {
  if (fork_guard_.InChild()) return false;
  uint32_t* const depth = Nesting::Depth(id_);
  if (depth == nullptr || *depth == 0) return false;
  if (--*depth == 0) LeaveOutermost();
  return true;
}

void Gate::LeaveOutermost() {
  ipc::GateCells& cells = page_.cells();
  // Before the word: who sees this scope gone sees the count.
  if (!parks_by_itself_) scopes_left_.fetch_add(1, std::memory_order_relaxed);
  GateWord word = LookAtGate(cells);
  // Nothing to do in a page that somebody else has written over.
  while (const auto next = AfterLeave(word)) {
    const bool last = next->scopes() == 0;
    if (last) cells.left_at_ns.store(CoarseNow(), std::memory_order_relaxed);
    if (!MoveGate(cells, word, *next)) continue;
    if (last && next->paused()) parker_.Wake();
    return;
  }
}

absl::Status Gate::EnterForProcess(absl::Duration wait) {
  if (fork_guard_.InChild()) return fork_guard_.Check();
  return EnterOutermost(false, wait);
}

void Gate::LeaveForProcess() {
  if (!fork_guard_.InChild()) LeaveOutermost();
}

uint32_t Gate::depth() const {
  if (fork_guard_.InChild()) return 0;
  const uint32_t* const depth = Nesting::Depth(id_);
  return depth == nullptr ? 0 : *depth;
}

bool Gate::on() {
  if (fork_guard_.InChild()) return false;
  base::MutexLock lock(&switch_mu_);
  return on_;
}

absl::Status Gate::TurnOn(std::optional<absl::Duration> park_after) {
  if (fork_guard_.InChild()) return fork_guard_.Check();
  base::MutexLock lock(&switch_mu_);
  if (park_after.has_value()) {
    parker_.SetParkAfter(ToNanoseconds(*park_after));
  }
  if (on_) return absl::OkStatus();
  on_ = true;
  LeaveOutermost();
  parker_.SetOn(true);
  return absl::OkStatus();
}

absl::Status Gate::TurnOff(absl::Duration wait) {
  if (fork_guard_.InChild()) return fork_guard_.Check();
  base::MutexLock lock(&switch_mu_);
  if (!on_) return absl::OkStatus();
  absl::Status status = EnterOutermost(false, wait);
  if (!status.ok()) return status;
  on_ = false;
  parker_.SetOn(false);
  return status;
}

void Gate::PauseNoticed() {
  if (!fork_guard_.InChild()) parker_.Wake();
}

}  // namespace gmb::internal
