// Every interleaving of the gate's machine, and proof that the explorer would
// see a broken rule: each rule is broken once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>

#include "tests/client/gate/gate_explorer.h"

namespace gmb::internal::model {
namespace {

using ipc::GateState;
using ipc::GateWord;

// Nobody starts anything and nothing goes wrong: what is under way ends.
bool Quiet(const Step& step) { return !step.fault && !step.fresh; }

bool NobodyIsIn(const State& state) {
  for (int i = 0; i < kThreads; ++i) {
    if (state.threads[i] != Thread::kOut && !state.stopped[i]) return false;
  }
  return true;
}

// All scopes that were wanted came in and went out, and the gate is where the
// broker can take it, unless a stopped thread or the program keeps it open.
bool AllGotOn(const State& state) {
  if (!NobodyIsIn(state)) return false;
  if (state.broker != Broker::kIdle && state.broker != Broker::kEvicted) {
    return false;
  }
  return state.ScopesIn() > 0 || state.off || state.word.parked() ||
         state.word.state() == GateState::kClosed;
}

std::optional<std::string> Trap(Explorer& explorer) {
  return explorer.AllEnd(Quiet, AllGotOn);
}

bool PlainScopesGotIn(const State& state) {
  for (int i = 0; i < kThreads; ++i) {
    const Thread thread = state.threads[i];
    if (!state.stopped[i] &&
        (thread == Thread::kEntering || thread == Thread::kImpatient ||
         thread == Thread::kRestoring)) {
      return false;
    }
  }
  return true;
}

// The same with a GPU that never ends its work: captures may have to give up at
// their deadline, everything else gets in.
std::optional<std::string> TrapOnHungGpu(Explorer& explorer) {
  return explorer.AllEnd(
      [](const Step& step) { return Quiet(step) && step.actor != Actor::kGpu; },
      PlainScopesGotIn);
}

// The whole client is stopped or gone: the broker finishes by itself.
std::optional<std::string> BrokerTrap(Explorer& explorer) {
  return explorer.AllEnd(
      [](const Step& step) {
        return Quiet(step) && step.actor == Actor::kBroker;
      },
      [](const State& state) {
        return state.broker == Broker::kIdle ||
               state.broker == Broker::kEvicted;
      });
}

// The parker's thread is stopped, at any point. Scopes get in all the same.
std::optional<std::string> TrapOnStoppedParker(Explorer& explorer) {
  return explorer.AllEnd(
      [](const Step& step) {
        return Quiet(step) && step.actor != Actor::kParker;
      },
      PlainScopesGotIn);
}

TEST(GateModel, EveryInterleavingIsSafeAndNoStateIsATrap) {
  Explorer explorer{Rules{}};
  const auto unsafe = explorer.Reach();
  ASSERT_FALSE(unsafe.has_value()) << *unsafe;
  std::printf("%zu states, %zu steps\n", explorer.states(), explorer.steps());
  const auto trap = Trap(explorer);
  EXPECT_FALSE(trap.has_value()) << *trap;
  const auto hung = TrapOnHungGpu(explorer);
  EXPECT_FALSE(hung.has_value()) << *hung;
  const auto parker = TrapOnStoppedParker(explorer);
  EXPECT_FALSE(parker.has_value()) << *parker;
  const auto broker = BrokerTrap(explorer);
  EXPECT_FALSE(broker.has_value()) << *broker;
}

// A situation that is never reached is not checked either.
TEST(GateModel, EverySituationThatMattersIsReached) {
  Explorer explorer{Rules{}};
  ASSERT_FALSE(explorer.Reach().has_value());
  const auto in_use = [](const State& state) { return state.ScopesIn() > 0; };
  using Is = std::function<bool(const State&)>;
  const std::pair<const char*, Is> situations[] = {
      {"a scope beside a synchronisation",
       [&](const State& s) {
         return in_use(s) && s.parker == Parker::kCalling;
       }},
      {"a capture that waits for it",
       [](const State& s) {
         return s.threads[2] == Thread::kNestedAwaiting &&
                s.parker == Parker::kCalling;
       }},
      {"two captures",
       [](const State& s) {
         return InCapture(s.threads[1]) && InCapture(s.threads[2]);
       }},
      {"a true copy of a parked gate",
       [](const State& s) {
         return s.word.parked() && s.copy == Copy::kMade && !s.changed;
       }},
      {"an evicted session that all threads want back",
       [](const State& s) {
         return s.broker == Broker::kEvicted &&
                std::all_of(s.threads.begin(), s.threads.end(), Entering);
       }},
      {"a broker that died with the gate closed",
       [](const State& s) {
         return s.broker == Broker::kDead && s.journal_host;
       }},
      {"a broker that died while it paused",
       [&](const State& s) {
         return s.broker == Broker::kDead && s.word.paused() && in_use(s);
       }},
      {"a stopped thread in a scope under a pause",
       [](const State& s) {
         for (int i = 0; i < kThreads; ++i) {
           if (s.stopped[i] && InScope(s.threads[i])) return s.word.paused();
         }
         return false;
       }},
      {"SYNC under a pause", [](const State& s) {
         return s.word.state() == GateState::kSync && s.word.paused();
       }}};
  for (const auto& [name, is] : situations) {
    EXPECT_TRUE(explorer.Any(is)) << name;
  }
}

// Expects the explorer to report rules of which one is broken.
void ExpectUnsafe(const Rules& rules, const std::string& what) {
  Explorer explorer(rules);
  const auto unsafe = explorer.Reach();
  ASSERT_TRUE(unsafe.has_value()) << "not seen: " << what;
  EXPECT_NE(unsafe->find(what), std::string::npos) << *unsafe;
}

using Check = std::optional<std::string> (*)(Explorer&);
void ExpectTrapped(const Rules& rules, Check check, const std::string& what) {
  Explorer explorer(rules);
  const auto unsafe = explorer.Reach();
  ASSERT_FALSE(unsafe.has_value()) << *unsafe;
  const auto trap = check(explorer);
  ASSERT_TRUE(trap.has_value()) << "not seen";
  EXPECT_NE(trap->find(what), std::string::npos) << *trap;
}

constexpr char kInUse[] = "in use behind a parked or closed gate";

TEST(BrokenGateModel, EnteringWithoutAnEpochMakesOldCopiesPassForTrue) {
  Rules rules;
  rules.next_enter_step = [](GateWord word, bool capture, bool over) {
    EnterStep step = NextEnterStep(word, capture, over);
    step.next = GateWord(step.next.state(), step.next.scopes(), word.epoch());
    return step;
  };
  ExpectUnsafe(rules, "a copy that is not true passes for true");
}

TEST(BrokenGateModel, CopiesThatNobodyComparesPassForTrue) {
  Rules rules;
  rules.copy_is_true = [](GateWord word, uint64_t) { return word.parked(); };
  ExpectUnsafe(rules, "a copy that is not true passes for true");
}

TEST(BrokenGateModel, ScopesThatIgnoreThePause) {
  Rules rules;
  rules.next_enter_step = [](GateWord word, bool capture, bool over) {
    const bool paused = word.paused();
    EnterStep step = NextEnterStep(AfterWithdraw(word), capture, over);
    if (paused) step.next = AfterPause(step.next);
    return step;
  };
  ExpectUnsafe(rules, "a scope comes in under a pause");
}

TEST(BrokenGateModel, ScopesThatComeInThroughAClosedGate) {
  Rules rules;
  rules.next_enter_step = [](GateWord word, bool capture, bool over) {
    if (word.state() == GateState::kClosed) {
      return EnterStep{EnterStep::Kind::kMove,
                       GateWord(GateState::kOpen, 1, word.epoch() + 1)};
    }
    return NextEnterStep(word, capture, over);
  };
  ExpectUnsafe(rules, "a client closes, or leaves CLOSED");
}

TEST(BrokenGateModel, CapturesThatTakeTheGateBack) {
  Rules rules;
  rules.captures_await = false;
  rules.next_enter_step = [](GateWord word, bool, bool) {
    return NextEnterStep(word, false, true);
  };
  ExpectUnsafe(rules, "synchronised during a capture");
}

// The design of the word alone has this hole: a plain scope takes the gate
// back, and a capture comes in beside it while the call is still under way.
TEST(BrokenGateModel, CapturesThatLookAtTheWordAlone) {
  Rules rules;
  rules.captures_await = false;
  ExpectUnsafe(rules, "synchronised during a capture");
}

TEST(BrokenGateModel, ParkingWithoutWaitingForTheGpu) {
  Rules rules;
  rules.parker_waits = false;
  ExpectUnsafe(rules, kInUse);
}

TEST(BrokenGateModel, ParkingOverAScopeThatTookTheGateBack) {
  Rules rules;
  rules.after_sync_end = [](GateWord word, bool quiet) {
    return std::optional(GateWord(quiet ? GateState::kParked : GateState::kOpen,
                                  0, word.epoch()));
  };
  Explorer explorer(rules);
  EXPECT_TRUE(explorer.Reach().has_value());
}

TEST(BrokenGateModel, SynchronisingWhileAScopeIsIn) {
  Rules rules;
  rules.after_sync_begin = [](GateWord word) {
    return word.state() == GateState::kOpen
               ? std::optional(
                     GateWord(GateState::kSync, 0, word.epoch(), word.paused()))
               : std::nullopt;
  };
  ExpectUnsafe(rules, "miscounts");
}

TEST(BrokenGateModel, ClosingAGateThatIsOnlyOpen) {
  Rules rules;
  rules.after_close = [](GateWord word) {
    return word.scopes() == 0 && word.state() != GateState::kClosed
               ? std::optional(GateWord(GateState::kClosed, 0, word.epoch()))
               : std::nullopt;
  };
  ExpectUnsafe(rules, kInUse);
}

TEST(BrokenGateModel, ReopeningAsOpen) {
  Rules rules;
  rules.after_reopen = [](GateWord word) {
    const auto next = ipc::AfterReopen(word);
    return next ? std::optional(GateWord(GateState::kOpen, 0, word.epoch()))
                : next;
  };
  ExpectUnsafe(rules, "the broker writes OPEN");
}

TEST(BrokenGateModel, ANewBrokerThatForgetsTheJournal) {
  Rules rules;
  rules.back_reads_journal = false;
  ExpectUnsafe(rules, "in the host pool and the gate is not closed");
}

TEST(BrokenGateModel, APauseThatOutlivesItsBroker) {
  Rules rules;
  rules.back_withdraws = false;
  ExpectTrapped(rules, Trap, "stuck");
}

TEST(BrokenGateModel, APauseThatOutlivesTheEviction) {
  Rules rules;
  rules.after_close = [](GateWord word) {
    const auto next = ipc::AfterClose(word);
    return next && word.paused() ? std::optional(AfterPause(*next)) : next;
  };
  rules.after_reopen = [](GateWord word) {
    const auto next = ipc::AfterReopen(word);
    return next && word.paused() ? std::optional(AfterPause(*next)) : next;
  };
  ExpectTrapped(rules, Trap, "stuck");
}

TEST(BrokenGateModel, AParkerThatNobodyWakes) {
  Rules rules;
  rules.enter_wakes = false;
  ExpectTrapped(rules, Trap, "stuck");
}

TEST(BrokenGateModel, ScopesThatWaitForTheGpuForEver) {
  Rules rules;
  rules.next_enter_step = [](GateWord word, bool capture, bool) {
    return NextEnterStep(word, capture, false);
  };
  ExpectTrapped(rules, TrapOnHungGpu, "lose patience");
}

TEST(BrokenGateModel, AFailedSynchronisationThatStaysInSync) {
  Rules rules;
  rules.after_sync_end = [](GateWord word, bool quiet) {
    return quiet ? ipc::AfterSyncEnd(word, quiet) : std::nullopt;
  };
  ExpectTrapped(rules, Trap, "stuck");
}

TEST(BrokenGateModel, LeavingThatTouchesThePause) {
  Rules rules;
  rules.after_leave = [](GateWord word) {
    const auto next = ipc::AfterLeave(word);
    return next ? std::optional(AfterWithdraw(*next)) : next;
  };
  ExpectUnsafe(rules, "a client changes the pause");
}

}  // namespace
}  // namespace gmb::internal::model
