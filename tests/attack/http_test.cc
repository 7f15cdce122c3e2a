// HTTP/2 that no client speaks: before a session nobody reads it, and with one
// it costs its sender the session, and nobody else anything.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

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
  ServeDuring(*attackers.front(), 2);
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
  ServeDuring(*attacker, 2);
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

// Of all the sessions that a tenant may have.
TEST_F(HttpFloodTest, CallsThatNeverEndAreNotKept) {
  ExpectHarmless({"open_calls", "--connections", "60"});
}
TEST_F(HttpFloodTest, SessionsThatTakeNoAnswersAreReadNoFurther) {
  ExpectHarmless({"unread_answers", "--connections", "60"});
}
TEST_F(HttpFloodTest, QuestionsWithoutEndHoldUpNobody) {
  ExpectHarmless({"quota_questions", "--connections", "60"});
}
TEST_F(HttpFloodTest, RequestsWithoutEndHoldUpNobody) {
  ExpectHarmless({"hopeless_requests", "--connections", "60"});
}
TEST_F(HttpFloodTest, NoticesWithoutEndHoldUpNobody) {
  ExpectHarmless({"notices", "--connections", "60"});
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
  ServeDuring(*stranger, 2);
  Stop(*greeted);
  Stop(*stranger);
}

}  // namespace
}  // namespace gmb::attack
