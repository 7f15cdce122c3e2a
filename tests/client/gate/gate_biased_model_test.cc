// Every interleaving of the biased gate's machine, world by world, and proof
// that the explorer would see a broken rule: each line of the protocol is
// broken once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "tests/client/gate/biased_explorer.h"

namespace gmb::internal::biased {
namespace {

using ipc::GateState;

constexpr World kScopes{.name = "a second user", .user = true, .pauses = true};
constexpr World kInside{.name = "calls inside", .inside = true, .user = true};
constexpr World kCaptures{.name = "captures", .user = true, .captures = true};
constexpr World kDeath{
    .name = "a broker that dies", .user = true, .pauses = true, .dies = true};
constexpr World kLost{.name = "a lost event", .user = true, .resets = true};
constexpr World kLate{
    .name = "a late thread", .callers = 2, .stores = 1, .late_thread = true};
constexpr World kPauses{
    .name = "pauses", .callers = 2, .stores = 1, .pauses = true};
constexpr World kInsideTwo{.name = "calls inside, and a second caller",
                           .callers = 2,
                           .stores = 1,
                           .inside = true};
constexpr World kTwo{.name = "two callers", .callers = 2, .stores = 2};

constexpr World kWorlds[] = {kScopes, kInside, kCaptures,  kDeath, kLost,
                             kLate,   kPauses, kInsideTwo, kTwo};

// The world in which a broken rule shows: a small one that has what it needs.
const World& WorldOf(Broken broken) {
  switch (broken) {
    case Broken::kCountingIsTwoSteps:
    case Broken::kInnerUnmarks:
    case Broken::kInnerTrustsAMark:
    case Broken::kInnerUnmarksWhileItWaits:
      return kInside;
    case Broken::kCapturesDoNotEnter:
    case Broken::kRecordsDuringCaptures:
      return kCaptures;
    case Broken::kTakesALostEventForDone:
      return kLost;
    case Broken::kListsSlotsBeforeTheFence:
      return kLate;
    case Broken::kDoesNotEnd:
    case Broken::kLeavesAfterTheEnd:
      return kDeath;
    default:
      return kScopes;
  }
}

bool Quiet(const Step& step) { return !step.fresh; }

// Nobody wants in or is in, and the memory can be taken, or will never be.
bool AllGotOn(const State& state) {
  for (const Thread& thread : state.threads) {
    if (thread.call != Call::kOut || thread.inner != Call::kOut) return false;
  }
  if (state.user != User::kOut) return false;
  return state.over || state.word.parked() ||
         state.word.state() == GateState::kClosed;
}

// Each caller that wants in gets in and out again, and the gate is parked then.
std::optional<std::string> Trap(const Explorer& explorer) {
  return explorer.Trap([](const State&) { return true; }, Quiet, AllGotOn);
}

// A pause that is not withdrawn ends in a parked gate.
std::optional<std::string> TrapUnderAPause(const Explorer& explorer) {
  return explorer.Trap(
      [](const State& state) { return state.word.paused() && !state.dead; },
      [](const Step& step) { return Quiet(step) && !step.withdraw; },
      [](const State& state) {
        return state.word.parked() || state.word.state() == GateState::kClosed;
      });
}

// A scope that waits for calls of other threads does not wait for the pause's
// end as well.
std::optional<std::string> TrapBesideAScope(const Explorer& explorer) {
  return explorer.Trap(
      [](const State& state) {
        return state.user != User::kOut && !state.dead;
      },
      [](const Step& step) { return !step.withdraw && !step.of_user; },
      [](const State& state) {
        // One that has marked anew looks at `closing` next.
        const auto waits = [&](Call call) {
          return call == Call::kMetClosing ||
                 (call == Call::kMarked && state.closing);
        };
        return std::none_of(state.threads.begin(), state.threads.end(),
                            [&](const Thread& thread) {
                              return waits(thread.call) || waits(thread.inner);
                            });
      });
}

// Work that never ends does not keep a pause from being noticed.
std::optional<std::string> TrapWhilePolling(const Explorer& explorer) {
  return explorer.Trap(
      [](const State& state) {
        return state.word.paused() && state.idler == Idler::kPoll &&
               !state.pausing && state.gpu_old;
      },
      [](const Step& step) { return !step.withdraw && !step.of_gpu; },
      [](const State& state) { return state.idler == Idler::kRest; });
}

// The fault in one world; none if all is well.
std::optional<std::string> Wrong(const World& world, Broken broken,
                                 size_t* states) {
  Explorer explorer(world, broken);
  std::optional<std::string> wrong = explorer.Reach();
  *states = explorer.states();
  if (!wrong) wrong = Trap(explorer);
  if (!wrong && world.pauses) wrong = TrapUnderAPause(explorer);
  if (!wrong && world.pauses && world.user && !world.dies)
    wrong = TrapBesideAScope(explorer);
  if (!wrong && world.pauses && !world.dies) wrong = TrapWhilePolling(explorer);
  return wrong;
}

TEST(BiasedGateModel, EveryWorldIsSafeAndNoStateIsATrap) {
  for (const World& world : kWorlds) {
    size_t states = 0;
    const auto wrong = Wrong(world, Broken::kNothing, &states);
    EXPECT_FALSE(wrong.has_value()) << world.name << "\n" << *wrong;
    std::printf("%s: %zu states\n", world.name, states);
  }
}

// A situation that is never reached is not checked either.
TEST(BiasedGateModel, EverySituationThatMattersIsReached) {
  struct Situation {
    const char* name;
    const World& world;
    Explorer::Is is;
  };
  const auto of = [](const State& s) -> const Thread& { return s.threads[0]; };
  const Situation situations[] = {
      {"a call that waits behind a closed gate", kScopes,
       [&](const State& s) {
         return of(s).call == Call::kMetClosing &&
                s.word.state() == GateState::kClosed;
       }},
      {"a mark that is not seen yet, while the idler looks", kLate,
       [](const State& s) {
         return s.idler == Idler::kLook && !s.threads[1].marked &&
                s.threads[1].call == Call::kMarked;
       }},
      {"a call inside that waits, of one that has looked", kInside,
       [&](const State& s) {
         return of(s).call == Call::kLooked && of(s).inner == Call::kMetClosing;
       }},
      {"a record while a call inside of a mark is in by the ordinary gate",
       kInside,
       [&](const State& s) {
         return of(s).call == Call::kMarked && s.idler == Idler::kRecord &&
                of(s).inner == Call::kInOrdinary;
       }},
      {"the standing scope is out under a pause, with a scope in", kPauses,
       [&](const State& s) {
         return !s.standing && s.word.paused() &&
                of(s).call == Call::kSlowCalling;
       }},
      {"a capture that begins while an event is awaited", kCaptures,
       [](const State& s) { return s.capture && s.idler == Idler::kPoll; }},
      {"the session's end with the memory away", kDeath,
       [](const State& s) {
         return s.over && s.word.state() == GateState::kClosed;
       }},
      {"the session's end while the idler closes", kDeath,
       [](const State& s) { return s.over && s.closing && s.standing; }}};
  for (const Situation& situation : situations) {
    Explorer explorer(situation.world, Broken::kNothing);
    ASSERT_FALSE(explorer.Reach().has_value());
    EXPECT_TRUE(explorer.Any(situation.is)) << situation.name;
  }
}

// The last step of a way, and what is wrong with it.
std::string What(const std::string& way) {
  const std::string fault = way.substr(0, way.find_last_of('\n'));
  if (way.ends_with("stuck")) return "stuck";
  return fault.substr(fault.find_last_of('\n') + 1);
}

class BrokenBiasedGateModel : public ::testing::TestWithParam<int> {};

TEST_P(BrokenBiasedGateModel, IsSeen) {
  const auto broken = static_cast<Broken>(GetParam());
  const World& world = WorldOf(broken);
  size_t states = 0;
  const auto wrong = Wrong(world, broken, &states);
  ASSERT_TRUE(wrong.has_value()) << "not seen: " << Name(broken);
  ASSERT_NE(*wrong, "too many states");
  std::printf("%s: %s, %zu states: %s\n", Name(broken), world.name, states,
              What(*wrong).c_str());
}

INSTANTIATE_TEST_SUITE_P(Each, BrokenBiasedGateModel,
                         ::testing::Range(static_cast<int>(Broken::kNothing) +
                                              1,
                                          static_cast<int>(Broken::kEnd)));

}  // namespace
}  // namespace gmb::internal::biased
