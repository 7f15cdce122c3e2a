// HTTP/2 that no client speaks: before a session nobody reads it, and with one
// it costs its sender the session, and nobody else anything.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/attack/attack_fixture.h"

namespace gmb::attack {
namespace {

// How a session ends that its process has given up.
constexpr char kByItself[] = "it disconnected";

class HttpFloodTest : public AttackTest {
 protected:
  void SetUp() override { Start(); }
};

TEST_F(HttpFloodTest, StrangersAreNotRead) {
  std::vector<std::unique_ptr<Program>> attackers;
  for (const std::string name :
       {"continuation_flood", "endless_field", "unknown_token_calls",
        "rapid_reset", "ping_flood", "settings_flood"}) {
    for (const std::string& directory : {TenantDir("mallory"), SocketDir()})
      attackers.push_back(
          StartAttacker({name, "--connections", "4"}, directory));
  }
  ServeDuring(*attackers.front(), 1);
  for (const auto& attacker : attackers) Stop(*attacker);
  ExpectCalmAgain();
}

TEST_F(HttpFloodTest, TheBrokerEndsInOrderDuringCallsOfASession) {
  ExpectEndsInOrderDuring({"unknown_token_calls", "--greet"});
}

// By the attack's name.
class BreachTest : public HttpFloodTest,
                   public ::testing::WithParamInterface<std::string> {
 protected:
  // Mallory's session was ended by the broker.
  [[nodiscard]] bool LostASession() {
    const std::vector<std::string> reasons = events().Ended("mallory");
    const auto lost =
        std::find_if(reasons.begin(), reasons.end(),
                     [](const std::string& why) { return why != kByItself; });
    if (lost == reasons.end()) return false;
    std::cout << "a session of mallory ended: " << *lost << "\n";
    return true;
  }
};

TEST_P(BreachTest, CostsItsSenderTheSessionAndNobodyElseAnything) {
  const auto attacker = StartAttacker({GetParam(), "--greet"});
  ServeDuring(*attacker, 1);
  EXPECT_TRUE(Await([this] { return LostASession(); }));
  EXPECT_TRUE(attacker->AwaitOut("sessions_lost"));
  Stop(*attacker);
  ExpectCalmAgain();
}

INSTANTIATE_TEST_SUITE_P(Floods, BreachTest,
                         ::testing::Values("continuation_flood", "data_pings",
                                           "endless_field",
                                           "unknown_token_calls", "rapid_reset",
                                           "ping_flood", "settings_flood"),
                         [](const auto& flood) { return flood.param; });

// A tenant's own, which may be done, and help nobody.
TEST_F(HttpFloodTest, FramesThatNobodyAnswersHoldUpNobody) {
  ExpectHarmless({"cheap_frames", "--greet"});
}
TEST_F(HttpFloodTest, EmptyContinuationsHoldUpNobody) {
  ExpectHarmless({"empty_continuations", "--greet"});
}

// Beyond the pace they wait for their turn, and none is lost.
TEST_F(HttpFloodTest, CallsBeyondThePaceAreAnsweredLater) {
  constexpr int kCalls = 8 * 60;
  const auto attacker = StartAttacker({"open_calls", "--connections", "8"});
  EXPECT_TRUE(attacker->AwaitOut(absl::StrCat("answered=", kCalls, " ")))
      << attacker->Out();
  Stop(*attacker);
  EXPECT_THAT(events().Ended("mallory"), ::testing::Each(kByItself));
  ExpectCalmAgain();
}

// Of all the sessions that a tenant may have: the broker works for them at a
// pace (docs/protocol.md, section 5), and so it has time for others.
class PacedFloodTest : public HttpFloodTest {
 protected:
  struct Pace {
    double at_once = 0;
    double a_second = 0;
  };
  // Of messages; `cost` is how many an answered one counts as, at least.
  static Pace OfMessages(double cost) { return {10'000 / cost, 20'000 / cost}; }
  static Pace OfCalls() { return {256, 128}; }

  // The attack counts what the broker does for it, of which so much may be on
  // its way.
  void ExpectPaced(const std::string& attack, const std::string& counted,
                   const Pace& pace, double under_way) {
    const auto attacker = StartAttacker({attack, "--connections", "60"});
    const absl::Time start = absl::Now();
    ServeDuring(*attacker, 1);
    Stop(*attacker);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    const double done = CountOf(*attacker, counted);
    EXPECT_GT(done, 0);
    EXPECT_LE(done, pace.at_once + pace.a_second * seconds + under_way)
        << seconds << " s";
    ExpectCalmAgain();
  }

 private:
  static double CountOf(const Program& attacker, const std::string& what) {
    const std::string said = attacker.Out();
    const size_t over = said.rfind("over:");
    const size_t at = said.find(absl::StrCat(" ", what, "="), over);
    if (at == std::string::npos) return 0;
    return std::strtod(said.c_str() + at + what.size() + 2, nullptr);
  }
};

TEST_F(PacedFloodTest, CallsThatNeverEndAreNotKept) {
  constexpr double kOfAConnection = 80;
  ExpectPaced("open_calls", "answered", OfCalls(), kOfAConnection);
}
TEST_F(HttpFloodTest, SessionsThatTakeNoAnswersAreReadNoFurther) {
  ExpectHarmless({"unread_answers", "--connections", "60"});
}
TEST_F(PacedFloodTest, QuestionsWithoutEndHoldUpNobody) {
  constexpr double kTurns = 60 * 16;
  ExpectPaced("quota_questions", "answered", OfMessages(2), kTurns);
}
// Some of them are answered twice, at first that they wait.
TEST_F(PacedFloodTest, RequestsWithoutEndHoldUpNobody) {
  constexpr double kTurns = 60 * 16;
  ExpectPaced("hopeless_requests", "answered", OfMessages(17. / 2), 2 * kTurns);
}
// As many as may wait, of all sessions.
TEST_F(HttpFloodTest, RequestsThatWaitHoldUpNobody) {
  ExpectHarmless({"waiting_requests", "--connections", "60"});
}
// Nobody sees when they are read. They are sent as the windows of their streams
// allow, which gRPC enlarges a little before it reads on.
TEST_F(PacedFloodTest, NoticesWithoutEndHoldUpNobody) {
  constexpr double kInWindows = 60 * 65'535. / 11;
  ExpectPaced("notices", "asked", OfMessages(1), 2 * kInWindows);
}

// Where the kernel gives no pidfd of a peer, a session of the directory lets
// all of its processes in.
class OldKernelFloodTest : public AttackTest {
 protected:
  void SetUp() override { Start(Kernel::kNoPassRightsNoPidfd); }
};

TEST_F(OldKernelFloodTest, OneProcessHasASessionAndAnotherOneFloods) {
  const auto session = ConnectAs("mallory");
  ASSERT_NE(session, nullptr);
  const auto greeted = StartAttacker({"continuation_flood", "--greet"});
  const auto stranger = StartAttacker({"unknown_token_calls"});
  ServeDuring(*stranger, 1);
  Stop(*greeted);
  Stop(*stranger);
}

}  // namespace
}  // namespace gmb::attack
