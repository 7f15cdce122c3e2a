// The biased gate's idler, and what surrounds the process: GPU and broker.
#include <algorithm>

#include "tests/client/gate/biased_model_stepper.h"

namespace gmb::internal::biased {

using ipc::GateState;
using ipc::GateWord;

namespace {

uint8_t Listed(const State& state) {
  uint8_t listed = 0;
  for (int i = 0; i < kSlots; ++i) {
    if (state.threads[i].listed) listed = static_cast<uint8_t>(listed | 1 << i);
  }
  return listed;
}

}  // namespace

void Stepper::IdlerStep() {
  State to = from_;
  const auto go = [&](const char* name, Idler next) {
    to.idler = next;
    Add(name, to);
  };
  switch (from_.idler) {
    case Idler::kRest:
      return Rest();
    case Idler::kFenceEarly:
      for (Thread& thread : to.threads) FlushAll(thread);
      return go("membarrier, for a pause", Idler::kDrain);
    case Idler::kDrain:
      if (std::none_of(from_.threads.begin(), from_.threads.end(),
                       [](const Thread& thread) { return thread.marked; })) {
        go("all marks are out", Idler::kNote);
      }
      GiveUp();
      steps_.back().fresh = true;  // its patience is over
      return;
    case Idler::kNote:
      if (Is(Broken::kNotesAfterRecording)) return Record();
      Note(to);
      return go("note the counts", Idler::kRecord);
    case Idler::kRecord:
      if (!Is(Broken::kNotesAfterRecording)) return Record();
      Note(to);
      return go("note the counts", Idler::kPoll);
    case Idler::kPoll:
      return Poll();
    case Idler::kClose:
      to.closing = !Is(Broken::kDoesNotClose);
      if (Is(Broken::kFencesBeforeClosing)) {
        to.closing = from_.closing;
        for (Thread& thread : to.threads) FlushAll(thread);
      }
      return go("close the bias", Idler::kFence);
    case Idler::kFence:
      if (Is(Broken::kFencesBeforeClosing)) {
        to.closing = true;
      } else if (!Is(Broken::kDoesNotFence)) {
        for (Thread& thread : to.threads) FlushAll(thread);
      }
      if (!Is(Broken::kListsSlotsBeforeTheFence)) to.slots_seen = Listed(to);
      return go("membarrier", Idler::kLook);
    case Idler::kLook:
      return Look();
    case Idler::kLeave:
      return LeaveStanding();
    case Idler::kSync:
      return Sync();
    case Idler::kLookAgain:
      return LookAgain();
    case Idler::kPark:
      return Park();
  }
}

void Stepper::Rest() {
  if (from_.over || from_.word.state() != GateState::kOpen) return;
  State to = from_;
  to.idler = Idler::kNote;
  if (from_.word.paused()) {
    to.closing = true;
    to.pausing = true;
    to.idler = Idler::kFenceEarly;
  }
  Add("begin", to);
  if (from_.word.paused() && from_.closing) {
    GiveUp();
    steps_.back().fresh = true;  // this pause is not heeded
  }
}

void Stepper::Note(State& to) const {
  for (Thread& thread : to.threads) {
    thread.loaded =
        static_cast<int8_t>(std::max(thread.loaded - thread.count, -4));
    thread.count = 0;
  }
  to.scopes_left = false;
  to.slots_seen =
      Is(Broken::kListsSlotsBeforeTheFence) ? Listed(to) : uint8_t{0};
}

void Stepper::Record() {
  if (from_.capture && !Is(Broken::kRecordsDuringCaptures)) return GiveUp();
  State to = from_;
  if (!Is(Broken::kDoesNotRecord)) {
    to.gpu_old = from_.gpu_old || from_.gpu_new;
    to.gpu_new = false;
  }
  to.event_lost = false;
  to.idler = from_.idler == Idler::kNote ? Idler::kRecord : Idler::kPoll;
  Step& step = Add("record", to);
  if (from_.capture) step.fault = "a record destroys a capture";
}

void Stepper::Poll() {
  if (from_.event_lost && !Is(Broken::kTakesALostEventForDone)) {
    return GiveUp();
  }
  // Its patience is over, or it begins anew under the pause that came meanwhile.
  const bool noticed = from_.word.paused() && !Is(Broken::kPollsThroughPauses);
  if ((from_.pausing || noticed) && from_.gpu_old) {
    GiveUp();
    steps_.back().fresh = true;
  }
  if (from_.gpu_old && !from_.event_lost && !Is(Broken::kDoesNotPoll)) return;
  State to = from_;
  to.idler = Idler::kClose;
  Add("the event has passed", to);
}

// Of each slot the mark, then the count.
void Stepper::Look() {
  const int slot = from_.look / 2;
  const bool first = from_.look % 2 == 0;
  const bool mark = first != Is(Broken::kLooksAtCountsBeforeMarks);
  const Thread& thread = from_.threads[slot];
  const bool bad = mark
                       ? thread.marked && !Is(Broken::kDoesNotLookAtMarks)
                       : thread.count != 0 && !Is(Broken::kDoesNotLookAtCounts);
  if ((from_.slots_seen & 1 << slot) != 0 && bad) return GiveUp();
  State to = from_;
  if (from_.look + 1 < 2 * world_.callers) {
    ++to.look;
  } else {
    to.slots_seen = 0;
    to.idler = Idler::kLeave;
  }
  Add("look at a slot", to);
}

// Under the mutex `bias`.
void Stepper::LeaveStanding() {
  if (!from_.closing && !Is(Broken::kLeavesWithoutClosing)) return GiveUp();
  if (from_.over && !Is(Broken::kLeavesAfterTheEnd)) return GiveUp();
  State to = from_;
  if (from_.standing && from_.word.scopes() > 1) return GiveUp();
  if (from_.standing && !Is(Broken::kDoesNotLeave)) {
    Leave(to);
    to.standing = false;
  }
  to.idler = Idler::kSync;
  Add("leave the standing scope", to);
}

void Stepper::Sync() {
  State to = from_;
  to.idler = Idler::kLookAgain;
  if (const auto next = AfterSyncBegin(from_.word)) {
    Write(to, *next);
  } else if (Is(Broken::kSyncsOverScopes)) {
    Write(to, GateWord(GateState::kSync, 0, 0, from_.word.paused()));
  } else {
    return GiveUp();
  }
  Add("SYNC", to);
}

// Calls came in by ordinary scopes alone since the slots were looked at.
void Stepper::LookAgain() {
  State to = from_;
  to.idler = Idler::kPark;
  if (from_.scopes_left && !Is(Broken::kDoesNotLookAgain)) {
    if (const auto back = AfterSyncEnd(from_.word, false)) Write(to, *back);
    to.idler = Idler::kRest;
  }
  Add("look again", to);
}

void Stepper::Park() {
  State to = from_;
  to.idler = Idler::kRest;
  if (const auto next = AfterSyncEnd(from_.word, true)) {
    Write(to, *next);
  } else if (Is(Broken::kParksOverScopes)) {
    Write(to, GateWord(GateState::kParked, 0, 0, from_.word.paused()));
  }
  Add("PARKED", to);
}

// Under the mutex `bias`. Beside another scope the standing one comes in whatever
// the pause says. With nobody in `closing` stays: the next caller puts both
// right.
void Stepper::GiveUp() {
  State to = from_;
  const GateWord word = from_.word;
  if (!from_.standing && word.state() == GateState::kOpen &&
      word.scopes() > 0 && !Is(Broken::kGivesUpWithTheStandingScopeOut)) {
    Write(to, GateWord(GateState::kOpen, word.scopes() + 1, 0, word.paused()));
    to.standing = true;
  }
  if (to.standing || Is(Broken::kGivesUpByClearingClosing)) {
    to.closing = false;
  }
  to.slots_seen = 0;
  to.idler = Idler::kRest;
  Add("give up", to);
}

void Stepper::Environment() {
  State to = from_;
  if (from_.gpu_old) {
    to.gpu_old = false;
    Add("older work ends", to).of_gpu = true;
  }
  to = from_;
  if (from_.gpu_new) {
    to.gpu_new = false;
    Add("newer work ends", to).of_gpu = true;
  }
  to = from_;
  if (from_.capture) {
    to.capture = false;
    Add("a capture ends", to);
  } else if (world_.captures && Is(Broken::kCapturesDoNotEnter)) {
    to.capture = true;
    Add("begin a capture", to).fresh = true;
  }
  to = from_;
  if (world_.resets && from_.idler == Idler::kPoll && !from_.event_lost) {
    to.event_lost = true;
    Add("the event's context is reset", to).fresh = true;
  }
}

void Stepper::BrokerSteps() {
  State to = from_;
  if (from_.dead) {
    if (from_.over || Is(Broken::kDoesNotEnd)) return;
    to.over = true;
    // Nobody takes the memory any more: in for good, whatever the pause says.
    if (from_.word.state() != GateState::kClosed && !from_.standing) {
      Write(to, GateWord(GateState::kOpen, from_.word.scopes() + 1, 0,
                         from_.word.paused()));
      to.standing = true;
    }
    if (to.standing) to.closing = false;
    Add("the session is over", to);
    return;
  }
  if (const auto closed = AfterClose(from_.word)) {
    Write(to, *closed);
    Add("close", to).fresh = true;
  }
  to = from_;
  if (const auto open = AfterReopen(from_.word)) {
    Write(to, *open);
    Add("reopen", to);
  }
  to = from_;
  if (world_.pauses && from_.word.paused()) {
    Write(to, AfterWithdraw(from_.word));
    Add("withdraw the pause", to).withdraw = true;
  } else if (world_.pauses) {
    Write(to, AfterPause(from_.word));
    Add("pause", to).fresh = true;
  }
  to = from_;
  if (world_.dies) {
    to.dead = true;
    Add("the broker dies", to).fresh = true;
  }
}

void Steps(const World& world, Broken broken, const State& from,
           std::vector<Step>* steps) {
  steps->clear();
  Stepper(world, broken, from, steps).Take();
}

}  // namespace gmb::internal::biased
