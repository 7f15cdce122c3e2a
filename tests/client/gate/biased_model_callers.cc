// The biased gate's callers, and the second user of the ordinary one.
#include <algorithm>

#include "tests/client/gate/biased_model_stepper.h"

namespace gmb::internal::biased {

using ipc::GateState;
using ipc::GateWord;

bool Flush(Thread& thread) {
  const Store store = thread.stores.front();
  if (store == Store::kNone) return false;
  std::rotate(thread.stores.begin(), thread.stores.begin() + 1,
              thread.stores.end());
  thread.stores.back() = Store::kNone;
  if (store == Store::kMark) thread.marked = true;
  if (store == Store::kUnmark) thread.marked = false;
  if (store == Store::kCount && thread.count < 3) ++thread.count;
  return true;
}

void FlushAll(Thread& thread) {
  while (Flush(thread)) {
  }
}

void Write(State& state, GateWord next) {
  state.word = GateWord(next.state(), next.scopes(), 0, next.paused());
}

bool Enter(State& state) {
  auto next = AfterEnter(state.word);
  if (!next) next = AfterTakeBack(state.word);
  if (!next) return false;
  Write(state, *next);
  return true;
}

void Leave(State& state) {
  if (const auto next = AfterLeave(state.word)) Write(state, *next);
}

namespace {

Call& At(State& state, int i, bool inner) {
  return inner ? state.threads[i].inner : state.threads[i].call;
}

// The mark that the call found when it began.
int Was(const State& state, int i, bool inner) {
  return inner ? MarkOf(state.threads[i].call) : 0;
}

}  // namespace

bool Stepper::Put(Thread& thread, Store store) const {
  const auto end = thread.stores.begin() + world_.stores;
  const auto place = std::find(thread.stores.begin(), end, Store::kNone);
  if (place == end) return false;
  *place = store;
  return true;
}

void Stepper::Take() {
  for (int i = 0; i < world_.callers; ++i) {
    const Thread& thread = from_.threads[i];
    if (thread.inner == Call::kOut) CallStep(i, false);
    if (i == 0 && world_.inside && thread.call != Call::kOut) {
      CallStep(i, true);
    }
    State to = from_;
    if (Flush(to.threads[i])) Add("a store is seen", to);
  }
  const size_t before = steps_.size();
  if (world_.user) UserStep();
  for (size_t i = before; i < steps_.size(); ++i) steps_[i].of_user = true;
  IdlerStep();
  Environment();
  BrokerSteps();
}

void Stepper::CallStep(int i, bool inner) {
  State to = from_;
  Thread& thread = to.threads[i];
  Call& at = At(to, i, inner);
  switch (at) {
    case Call::kOut:
      return Begin(i, inner);
    case Call::kMarked:
      if (!from_.closing || Is(Broken::kCallerDoesNotLook) ||
          Is(Broken::kCallerClearsClosingAndGoesOn)) {
        if (Is(Broken::kCallerClearsClosingAndGoesOn)) to.closing = false;
        // Only a call inside can come between the look and what follows it.
        const bool apart = i == 0 && world_.inside;
        at = apart ? Call::kLooked : Call::kCalling;
        Add("look at closing", to);
        return;
      }
      at = Call::kMetClosing;
      if (Is(Broken::kCallerMarksWhileItWaits) ||
          (Was(from_, i, inner) != 0 &&
           !Is(Broken::kInnerUnmarksWhileItWaits)) ||
          Put(thread, Store::kUnmark)) {
        Add("meet closing", to);
      }
      return;
    case Call::kLooked:
      at = Call::kCalling;
      Add("let in", to);
      return;
    case Call::kCalling:
    case Call::kSlowCalling:
      return Submit(i, inner);
    case Call::kSubmitted:
    case Call::kSlowSubmitted:
      return AfterSubmit(i, inner);
    case Call::kCountLoaded:
      FlushAll(thread);
      thread.count = static_cast<int8_t>(std::clamp(thread.loaded + 1, 0, 3));
      at = Call::kCounted;
      Add("store the count", to);
      return;
    case Call::kCounted:
      return Unmark(i, inner);
    case Call::kMetClosing:
      if (from_.word.paused()) MarkAnew(i, inner);
      return EnterOrdinary(i, inner);
    case Call::kInOrdinary:
      return PutBiasBack(i, inner);
    case Call::kSlowCounted:
      return LeaveOrdinary(i, inner);
    case Call::kSlowLeft:
      at = Call::kOut;
      if (Put(thread, Store::kMark)) Add("mark again", to);
      return;
  }
}

void Stepper::Begin(int i, bool inner) {
  State to = from_;
  Thread& thread = to.threads[i];
  if (!thread.listed) {
    FlushAll(thread);
    thread.listed = true;
    Add("list the slot", to).fresh = true;
    return;
  }
  const int was = Was(from_, i, inner);
  if (was == 2 || (was == 1 && Is(Broken::kInnerTrustsAMark))) {
    At(to, i, inner) = Call::kCalling;
    Add("let in by the call around it", to).fresh = true;
    return;
  }
  At(to, i, inner) = Call::kMarked;
  if (was == 1 || Is(Broken::kCallerDoesNotMark) || Put(thread, Store::kMark)) {
    Add("mark", to).fresh = true;
  }
}

// Under a pause it waits for a moment at a time.
void Stepper::MarkAnew(int i, bool inner) {
  State to = from_;
  FlushAll(to.threads[i]);
  At(to, i, inner) = Call::kMarked;
  if (Was(from_, i, inner) == 1 || Put(to.threads[i], Store::kMark))
    Add("mark anew", to);
}

// The call itself: work for the GPU, or the beginning of a capture.
void Stepper::Submit(int i, bool inner) {
  State to = from_;
  Call& at = At(to, i, inner);
  const bool slow = at == Call::kSlowCalling;
  at = slow ? Call::kSlowSubmitted : Call::kSubmitted;
  if (Is(Broken::kCallerCountsBeforeTheCall) && !slow) {
    if (Put(to.threads[i], Store::kCount)) Add("count too early", to);
    return;
  }
  if (i == 0 && world_.captures && !Is(Broken::kCapturesDoNotEnter)) {
    to.capture = true;
    Add("begin a capture", to);
    to.capture = from_.capture;
  }
  to.gpu_new = true;
  Add("submit", to);
}

void Stepper::AfterSubmit(int i, bool inner) {
  State to = from_;
  Thread& thread = to.threads[i];
  Call& at = At(to, i, inner);
  const bool slow = at == Call::kSlowSubmitted;
  at = slow ? Call::kSlowCounted : Call::kCounted;
  if (Is(Broken::kCallerCountsBeforeTheCall) && !slow) {
    to.gpu_new = true;
    Add("submit", to);
  } else if (Is(Broken::kCallerUnmarksBeforeItCounts) && !slow) {
    if (Put(thread, Store::kUnmark)) Add("unmark too early", to);
  } else if (Is(Broken::kCountingIsTwoSteps) && !slow && !inner && i == 0) {
    FlushAll(thread);
    thread.loaded = thread.count;
    at = Call::kCountLoaded;
    Add("load the count", to);
  } else if (Is(Broken::kCallerDoesNotCount) || Put(thread, Store::kCount)) {
    Add("count", to);
  }
}

void Stepper::Unmark(int i, bool inner) {
  State to = from_;
  Store store = Was(from_, i, inner) == 0 ? Store::kUnmark : Store::kNone;
  if (inner && Is(Broken::kInnerUnmarks)) store = Store::kUnmark;
  if (Is(Broken::kCallerUnmarksBeforeItCounts)) store = Store::kCount;
  At(to, i, inner) = Call::kOut;
  if (store == Store::kNone || Put(to.threads[i], store)) {
    Add("unmark", to);
  }
}

void Stepper::EnterOrdinary(int i, bool inner) {
  State to = from_;
  Thread& thread = to.threads[i];
  FlushAll(thread);  // a compare-and-swap
  Call& at = At(to, i, inner);
  if (from_.over && from_.word.state() != GateState::kClosed) {
    at = Call::kCalling;
    Add("let in for good", to);
    return;
  }
  if (from_.over) {
    at = Call::kOut;
    Add("the call fails", to);
    return;
  }
  if (Is(Broken::kCallerDoesNotEnter)) {
    at = Call::kCalling;
    Add("goes on", to);
    return;
  }
  // Nested, a scope is a count of the thread alone.
  if (!(inner && InOrdinary(from_.threads[i].call)) && !Enter(to)) return;
  at = Call::kInOrdinary;
  Add("enter", to);
}

// Under the mutex `bias`, with signals blocked.
void Stepper::PutBiasBack(int i, bool inner) {
  State to = from_;
  FlushAll(to.threads[i]);
  At(to, i, inner) = Call::kSlowCalling;
  if (Is(Broken::kCallerLeavesTheStandingScopeOut)) {
    to.closing = false;
  } else if (from_.word.paused()) {
    // The pause goes on; the ordinary scope is enough for this call.
    if (Is(Broken::kCallerClearsClosingUnderAPause)) to.closing = false;
  } else {
    if (!to.standing) to.standing = Enter(to);
    to.closing = false;
  }
  if (Is(Broken::kCallerLeavesBeforeTheCall) && !inner) {
    Leave(to);
    At(to, i, inner) = Call::kCalling;
  }
  Add("put the bias back", to);
}

void Stepper::LeaveOrdinary(int i, bool inner) {
  State to = from_;
  FlushAll(to.threads[i]);
  if (!(inner && InOrdinary(from_.threads[i].call))) {
    to.scopes_left = true;
    Leave(to);
  }
  const bool again =
      Was(from_, i, inner) == 1 && Is(Broken::kInnerUnmarksWhileItWaits);
  At(to, i, inner) = again ? Call::kSlowLeft : Call::kOut;
  Add("leave", to);
}

void Stepper::UserStep() {
  State to = from_;
  switch (from_.user) {
    case User::kOut:
      if (!Enter(to)) return;
      to.user = User::kIn;
      Add("the second user enters", to).fresh = true;
      return;
    case User::kIn:
      to.gpu_new = true;
      to.user = User::kSubmitted;
      Add("the second user submits", to);
      return;
    case User::kSubmitted:
      to.user = User::kCounted;
      if (Is(Broken::kScopesCountAfterLeaving)) {
        Leave(to);
        to.user = User::kLeft;
      } else if (!Is(Broken::kScopesDoNotCount)) {
        to.scopes_left = true;
      }
      Add("the second user counts", to);
      return;
    case User::kLeft:
      to.scopes_left = true;
      to.user = User::kOut;
      Add("the second user counts", to);
      return;
    case User::kCounted:
      to.user = User::kOut;
      Leave(to);
      Add("the second user leaves", to);
      return;
  }
}

}  // namespace gmb::internal::biased
