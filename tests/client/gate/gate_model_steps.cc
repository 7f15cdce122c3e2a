#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/gate/gate_model.h"

namespace gmb::internal::model {
namespace {

using ipc::GateState;

bool MaySubmit(Thread thread) {
  return thread == Thread::kIn || thread == Thread::kInCapture ||
         thread == Thread::kNested || thread == Thread::kNestedAwaiting ||
         thread == Thread::kNestedCapture || thread == Thread::kNestedInCapture;
}

// Until the call has returned.
bool Synchronizing(Parker parker) {
  return parker == Parker::kFlagged || parker == Parker::kCalling ||
         parker == Parker::kReturned || parker == Parker::kFailed;
}

// Collects the steps out of one state.
class Stepper {
 public:
  Stepper(const Rules& rules, const State& from) : rules_(rules), from_(from) {}

  std::vector<Step> All() {
    for (int i = 0; i < kThreads; ++i) {
      // Equal threads would take equal steps.
      const bool twin = i > 0 && from_.threads[i] == from_.threads[i - 1] &&
                        from_.stopped[i] == from_.stopped[i - 1];
      if (!twin && !from_.stopped[i]) OfThread(i);
    }
    if (from_.off) TurnOn();
    OfParker();
    OfGpu();
    OfBroker();
    return std::move(steps_);
  }

 private:
  enum Kind { kPlain, kFault, kFresh };

  // The memory may change while a scope is in or the GPU is at work.
  void Add(Actor actor, const char* name, State to, Kind kind = kPlain) {
    if (to.ScopesIn() > 0 || to.GpuBusy()) to.changed = true;
    steps_.push_back({actor, name, to, kind == kFault, kind == kFresh});
  }
  void Go(int i, const char* name, Thread to, Kind kind = kPlain) {
    State state = from_;
    state.threads[i] = to;
    Add(Actor::kThread, name, state, kind);
  }
  void ParkerGoes(const char* name, Parker to, Kind kind = kPlain) {
    State state = from_;
    state.parker = to;
    Add(Actor::kParker, name, state, kind);
  }
  void BrokerGoes(const char* name, Broker to, Kind kind = kPlain) {
    State state = from_;
    state.broker = to;
    Add(Actor::kBroker, name, state, kind);
  }

  void OfThread(int i);
  void Enter(int i, bool capture, bool patience_over);
  void AwaitAnswer(int i, bool capture);
  void BeginCapture(int i, Thread in);
  void Leave(int i, const char* name = "leave", Kind kind = kPlain);
  void TurnOn();
  void OfParker();
  void Look();
  void BeginSync();
  void EndSync(bool quiet);
  void OfGpu();
  void OfBroker();
  void BrokerIdle();
  void TryClose(Kind kind);
  void Reopen(const char* name, Kind kind);
  void ComeBack();

  const Rules& rules_;
  const State& from_;
  std::vector<Step> steps_;
};

void Stepper::OfThread(int i) {
  const Thread thread = from_.threads[i];
  if (std::none_of(from_.stopped.begin(), from_.stopped.end(),
                   [](bool stopped) { return stopped; })) {
    State state = from_;
    state.stopped[i] = true;
    Add(Actor::kThread, "a thread stops for ever", state, kFault);
  }
  if (MaySubmit(thread) && !from_.gpu_new) {
    State state = from_;
    state.gpu_new = true;
    Add(Actor::kThread, "submit work", state, kFresh);
  }
  switch (thread) {
    case Thread::kOut:
      Go(i, "want in", Thread::kEntering, kFresh);
      Go(i, "want in for a capture", Thread::kEnteringCapture, kFresh);
      return;
    case Thread::kEntering:
      return Enter(i, false, false);
    case Thread::kImpatient:
      return Enter(i, false, true);
    case Thread::kEnteringCapture:
      return Enter(i, true, false);
    case Thread::kRestoring:
      return AwaitAnswer(i, false);
    case Thread::kRestoringCapture:
      return AwaitAnswer(i, true);
    case Thread::kWaking:
    case Thread::kWakingCapture: {
      State state = from_;
      state.threads[i] =
          thread == Thread::kWaking ? Thread::kIn : Thread::kAwaiting;
      if (state.parker == Parker::kAsleep) state.parker = Parker::kAwake;
      return Add(Actor::kThread, "wake the parker", state);
    }
    case Thread::kAwaiting:
      BeginCapture(i, Thread::kInCapture);
      return;
    case Thread::kIn:
      Go(i, "nest", Thread::kNested, kFresh);
      Go(i, "want to capture inside", Thread::kNestedAwaiting, kFresh);
      return Leave(i);
    case Thread::kInCapture:
      Go(i, "nest in the capture", Thread::kNestedInCapture, kFresh);
      return Leave(i);
    case Thread::kNestedAwaiting:
      BeginCapture(i, Thread::kNestedCapture);
      return Go(i, "too late for the capture", Thread::kIn, kFault);
    case Thread::kNested:
    case Thread::kNestedCapture:
      return Go(i, "leave the inner scope", Thread::kIn);
    case Thread::kNestedInCapture:
      return Go(i, "leave the inner scope", Thread::kInCapture);
  }
}

// Gate::EnterSlowly.
void Stepper::Enter(int i, bool capture, bool patience_over) {
  const EnterStep step =
      rules_.next_enter_step(from_.word, capture, patience_over);
  Go(i, "too late", Thread::kOut, kFault);
  switch (step.kind) {
    case EnterStep::Kind::kMove: {
      const bool wakes =
          from_.word.state() == GateState::kParked && rules_.enter_wakes;
      State state = from_;
      state.word = step.next;
      state.threads[i] =
          capture ? (wakes ? Thread::kWakingCapture : Thread::kAwaiting)
                  : (wakes ? Thread::kWaking : Thread::kIn);
      return Add(Actor::kThread, "enter", state);
    }
    case EnterStep::Kind::kWait:
      if (!capture) Go(i, "lose patience", Thread::kImpatient);
      return;
    case EnterStep::Kind::kRestore:
      return Go(i, "ask the broker",
                capture ? Thread::kRestoringCapture : Thread::kRestoring);
    case EnterStep::Kind::kFull:
      return;
  }
}

void Stepper::AwaitAnswer(int i, bool capture) {
  Go(i, "no answer in time", Thread::kOut, kFault);
  if (from_.broker == Broker::kDead || from_.broker == Broker::kBack) return;
  if (from_.word.paused() || from_.word.state() == GateState::kClosed) return;
  Go(i, "the broker answers",
     capture ? Thread::kEnteringCapture : Thread::kEntering);
}

void Stepper::BeginCapture(int i, Thread in) {
  if (Synchronizing(from_.parker) && rules_.captures_await) {
    // At its deadline it goes out again; nested, its outer scope stays.
    if (from_.threads[i] == Thread::kAwaiting) {
      Leave(i, "too late for the capture", kFault);
    }
    return;
  }
  Go(i, "begin the capture", in);
}

void Stepper::Leave(int i, const char* name, Kind kind) {
  const auto next = rules_.after_leave(from_.word);
  if (!next) return;
  State state = from_;
  state.word = *next;
  state.threads[i] = Thread::kOut;
  Add(Actor::kThread, name, state, kind);
}

void Stepper::TurnOn() {
  const auto next = rules_.after_leave(from_.word);
  if (!next) return;
  State state = from_;
  state.word = *next;
  state.off = false;
  Add(Actor::kThread, "turn the gate on", state, kFresh);
}

// Parker::Run and Park.
void Stepper::OfParker() {
  switch (from_.parker) {
    case Parker::kAwake:
      return Look();
    case Parker::kAsleep:
      return;
    case Parker::kFlagged:
      return BeginSync();
    case Parker::kCalling:
      if (!from_.gpu_old || !rules_.parker_waits) {
        ParkerGoes("the GPU is quiet", Parker::kReturned);
      }
      return ParkerGoes("the call fails", Parker::kFailed, kFault);
    case Parker::kReturned:
      return ParkerGoes("lower the flag", Parker::kEnding);
    case Parker::kFailed:
      return ParkerGoes("lower the flag", Parker::kEndingFailed);
    case Parker::kEnding:
      return EndSync(true);
    case Parker::kEndingFailed:
      return EndSync(false);
  }
}

// The look and falling asleep are one: both under the lock that Wake takes.
void Stepper::Look() {
  if (from_.word.state() != GateState::kOpen) {
    ParkerGoes("sleep", Parker::kAsleep);
  } else if (from_.word.scopes() == 0) {
    ParkerGoes("raise the flag", Parker::kFlagged);
  }
}

void Stepper::BeginSync() {
  const auto next = rules_.after_sync_begin(from_.word);
  if (!next) return ParkerGoes("lower the flag", Parker::kAwake);
  State state = from_;
  state.word = *next;
  state.parker = Parker::kCalling;
  state.gpu_old = from_.GpuBusy();
  state.gpu_new = false;
  Add(Actor::kParker, "begin to synchronise", state);
}

void Stepper::EndSync(bool quiet) {
  State state = from_;
  state.parker = Parker::kAwake;
  const auto next = rules_.after_sync_end(from_.word, quiet);
  if (next) state.word = *next;
  Add(Actor::kParker, "end the synchronisation", state);
}

void Stepper::OfGpu() {
  if (from_.gpu_old) {
    State state = from_;
    state.gpu_old = false;
    Add(Actor::kGpu, "older work ends", state);
  }
  if (from_.gpu_new) {
    State state = from_;
    state.gpu_new = false;
    Add(Actor::kGpu, "newer work ends", state);
  }
}

void Stepper::OfBroker() {
  if (from_.broker != Broker::kDead) {
    State state = from_;
    state.broker = Broker::kDead;
    state.copy = Copy::kNone;
    Add(Actor::kBroker, "the broker dies", state, kFault);
  }
  const bool wanted = std::any_of(from_.threads.begin(), from_.threads.end(),
                                  [](Thread thread) {
                                    return thread == Thread::kRestoring ||
                                           thread == Thread::kRestoringCapture;
                                  });
  switch (from_.broker) {
    case Broker::kIdle:
      return BrokerIdle();
    case Broker::kPausing: {
      State state = from_;
      state.word = AfterWithdraw(from_.word);
      state.broker = Broker::kIdle;
      Add(Actor::kBroker, "withdraw the pause", state);
      return TryClose(kPlain);
    }
    case Broker::kClosed: {
      Reopen("give the eviction up", kFault);
      State state = from_;
      state.broker = Broker::kEvicted;
      state.journal_host = true;
      return Add(Actor::kBroker, "evict", state);
    }
    case Broker::kEvicted: {
      if (!wanted) return;
      State state = from_;
      state.broker = Broker::kRestored;
      state.journal_host = false;
      return Add(Actor::kBroker, "restore", state);
    }
    case Broker::kRestored:
      return Reopen("reopen", kPlain);
    case Broker::kDead:
      return BrokerGoes("a new broker", Broker::kBack);
    case Broker::kBack:
      return ComeBack();
  }
}

void Stepper::BrokerIdle() {
  State state = from_;
  state.word = AfterPause(from_.word);
  state.broker = Broker::kPausing;
  Add(Actor::kBroker, "pause", state, kFresh);
  TryClose(kFresh);
  if (from_.copy == Copy::kMaking) {
    state = from_;
    state.copy = rules_.copy_is_true(from_.word, from_.copy_epoch)
                     ? Copy::kMade
                     : Copy::kNone;
    return Add(Actor::kBroker, "the copy ends", state);
  }
  if (from_.word.parked()) {
    state = from_;
    state.copy = Copy::kMaking;
    state.copy_epoch = from_.word.epoch();
    state.changed = false;
    Add(Actor::kBroker, "begin a copy ahead", state, kFresh);
  }
}

void Stepper::TryClose(Kind kind) {
  const auto next = rules_.after_close(from_.word);
  if (!next) return;
  State state = from_;
  state.word = *next;
  state.broker = Broker::kClosed;
  Add(Actor::kBroker, "close", state, kind);
}

void Stepper::Reopen(const char* name, Kind kind) {
  const auto next = rules_.after_reopen(from_.word);
  if (!next) return;
  State state = from_;
  state.word = *next;
  state.broker = Broker::kIdle;
  Add(Actor::kBroker, name, state, kind);
}

// Nothing is known but the page and the journal.
void Stepper::ComeBack() {
  State state = from_;
  if (rules_.back_withdraws) state.word = AfterWithdraw(from_.word);
  if (from_.word.state() != GateState::kClosed) {
    state.broker = Broker::kIdle;
  } else {
    const bool host = from_.journal_host && rules_.back_reads_journal;
    state.broker = host ? Broker::kEvicted : Broker::kRestored;
  }
  Add(Actor::kBroker, "take over", state);
}

}  // namespace

std::vector<Step> Steps(const Rules& rules, const State& from) {
  return Stepper(rules, from).All();
}

}  // namespace gmb::internal::model
