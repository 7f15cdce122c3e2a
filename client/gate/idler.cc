// The idler: parks a process of which nobody says when it is idle.
#include "client/gate/idler.h"

#include <algorithm>
#include <optional>

#include "client/gate/bias_slots.h"
#include "ipc/gate_word.h"

namespace gmb::internal {

using ipc::GateState;
using ipc::GateWord;
using ipc::LookAtGate;
using ipc::MoveGate;

namespace {

// While the gate is off: the one that stands for "off", and the standing one.
constexpr uint32_t kScopesOfOff = 2;

}  // namespace

Idler::Counts Idler::Count() const {
  return {BiasSlots::Look().calls, bias_.scopes_left()};
}

Idler::TimePoint Idler::Step(TimePoint now) {
  switch (at_) {
    case At::kRest:
      return Rest(now);
    case At::kFenceEarly:
      return FenceThen(At::kDrain, now);
    case At::kDrain:
      return Drain(now);
    case At::kNote:
      noted_ = Count();
      was_busy_ = false;
      return Go(At::kRecord, now);
    case At::kRecord:
      return devices_.Record() ? Go(At::kPoll, now) : GiveUp(now);
    case At::kPoll:
      return Poll(now);
    case At::kClose:
      bias_.Close();
      return Go(At::kFence, now);
    case At::kFence:
      return FenceThen(At::kLook, now);
    case At::kLook:
      return Look(now);
    case At::kLeave:
      return bias_.LeaveStanding(EndOfUse()) ? Go(At::kSync, now) : GiveUp(now);
    case At::kSync:
      return Sync(now);
    case At::kLookAgain:
      return LookAgain(now);
    case At::kPark:
      return Park(now);
  }
  return now;
}

Idler::TimePoint Idler::Rest(TimePoint now) {
  if (never_ != nullptr || bias_.over()) return TimePoint::max();
  const GateWord word = LookAtGate(cells_);
  if (word.state() != GateState::kOpen) return Again(now);
  if (HeedsPauseNow(now)) {
    if (devices_.HeedsPauses()) {
      bias_.Close();
      pausing_ = true;
      drain_until_ = now + options_.drain;
      return Go(At::kFenceEarly, now);
    }
    PauseFailed(now);
  }
  // Nobody drains for this one.
  if (word.paused() && bias_.closing()) bias_.GiveUp();
  const Counts counts = Count();
  if (!began_ || counts != noted_) {
    noted_ = counts;
    Again(now);
    return NextLook(now);
  }
  if (now < quiet_since_ + options_.park_after) return NextLook(now);
  return Go(At::kNote, now);
}

bool Idler::HeedsPauseNow(TimePoint now) const {
  return LookAtGate(cells_).paused() && may_park_ && now >= backoff_until_;
}

Idler::TimePoint Idler::NextLook(TimePoint now) const {
  const std::chrono::nanoseconds woken_at(
      static_cast<int64_t>(cells_.woken_at_ns.load(std::memory_order_relaxed)));
  const auto age = std::max(options_.first_look, now - TimePoint(woken_at));
  return std::min(quiet_since_ + options_.park_after,
                  now + std::min(age, options_.park_after));
}

// If every call of this use came in the slow way, the last of them has said when
// it was over; a keep-alive kernel is one such call.
Idler::TimePoint Idler::EndOfUse() const {
  const Bias::SlowCalls slow = bias_.slow_calls();
  const uint64_t count = slow.count - parked_slow_;
  const bool all = noted_.calls - parked_.calls == count &&
                   noted_.scopes - parked_.scopes == count;
  return all && count > 0 && !was_busy_ ? slow.over_at : quiet_since_;
}

Idler::TimePoint Idler::Drain(TimePoint now) {
  // Beside the standing scope there may be those of the program.
  if (BiasSlots::Look().marked == 0 && !bias_.OthersAreIn())
    return Go(At::kNote, now);
  if (now >= drain_until_) return GiveUp(now);
  return now + std::chrono::milliseconds(1);
}

Idler::TimePoint Idler::Poll(TimePoint now) {
  switch (devices_.Poll()) {
    case IdlerDevices::Work::kBusy:
      was_busy_ = true;
      // A pause has its time, too: those who wait are let in again.
      if (pausing_ && now >= drain_until_) return GiveUp(now);
      // One that came meanwhile is taken from its beginning.
      if (!pausing_ && HeedsPauseNow(now)) {
        GiveUp(now);
        return now;
      }
      return now + options_.poll_every;
    case IdlerDevices::Work::kLost:
      return GiveUp(now);
    case IdlerDevices::Work::kDone:
      break;
  }
  if (was_busy_) quiet_since_ = now;
  return Go(At::kClose, now);
}

void Idler::StopPolling(TimePoint now) {
  if (at_ == At::kPoll && !pausing_) GiveUp(now);
}

Idler::TimePoint Idler::FenceThen(At next, TimePoint now) {
  if (bias_.Fence()) return Go(next, now);
  never_ = "membarrier is refused";
  return GiveUp(now);
}

Idler::TimePoint Idler::Look(TimePoint now) {
  const BiasSlots::Seen seen = BiasSlots::Look();
  if (seen.marked > 0 || seen.calls != noted_.calls) return GiveUp(now);
  if (!may_park_) {
    // A scope of the program says that it is not, whatever the GPU does.
    if (LookAtGate(cells_).scopes() <= kScopesOfOff) quiet_seen_ = true;
    return GiveUp(now);
  }
  return Go(At::kLeave, now);
}

Idler::TimePoint Idler::Sync(TimePoint now) {
  GateWord word = LookAtGate(cells_);
  while (const auto next = AfterSyncBegin(word)) {
    if (MoveGate(cells_, word, *next)) return Go(At::kLookAgain, now);
  }
  return GiveUp(now);
}

// Since the slots were looked at, calls came in by ordinary scopes alone. In
// SYNC one that was in before has counted, and one that comes in leaves SYNC.
Idler::TimePoint Idler::LookAgain(TimePoint now) {
  if (bias_.scopes_left() == noted_.scopes) return Go(At::kPark, now);
  GateWord word = LookAtGate(cells_);
  while (const auto next = AfterSyncEnd(word, false)) {
    if (MoveGate(cells_, word, *next)) break;
  }
  bias_.SyncEnded();
  return Again(now);
}

// Nobody else writes SYNC: it is the one of Sync.
Idler::TimePoint Idler::Park(TimePoint now) {
  GateWord word = LookAtGate(cells_);
  while (const auto next = AfterSyncEnd(word, true)) {
    if (MoveGate(cells_, word, *next)) break;
  }
  bias_.SyncEnded();
  parked_ = noted_;
  parked_slow_ = bias_.slow_calls().count;
  pauses_failed_ = 0;
  pausing_ = false;
  return Again(now);
}

Idler::TimePoint Idler::GiveUp(TimePoint now) {
  bias_.GiveUp();
  if (pausing_) PauseFailed(now);
  return Again(now);
}

void Idler::PauseFailed(TimePoint now) {
  std::chrono::nanoseconds backoff = options_.first_backoff;
  for (int i = 0; i < pauses_failed_ && backoff < options_.longest_backoff; ++i)
    backoff *= 2;
  ++pauses_failed_;
  backoff_until_ = now + std::min(backoff, options_.longest_backoff);
}

Idler::TimePoint Idler::Again(TimePoint now) {
  at_ = At::kRest;
  began_ = true;
  pausing_ = false;
  quiet_since_ = now;
  return now + options_.park_after;
}

}  // namespace gmb::internal
