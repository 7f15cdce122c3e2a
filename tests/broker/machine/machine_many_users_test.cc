// The work that one tenant can make with shared leases, of which each is many
// sessions' at once.
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kShared = 30;
constexpr uint64_t kSessions = 20;

class MachineManyUsersTest : public MachineFixture {
 protected:
  MachineManyUsersTest() : MachineFixture(Shape()) { world.CheckEvery(100); }
  static MachineWorld Shape() { return {.granules = 40}; }
  void SetUp() override {
    SetTenant("a");
    SetTenant("owner", {.guarantee = 40});
    owner = Connect("owner");
  }
  // All of them have each of the leases.
  std::vector<SimClient*> Users(const std::string& group = "") {
    std::vector<SimClient*> users;
    while (users.size() < kSessions) users.push_back(Parked("a", group));
    for (uint64_t i = 0; i < kShared; ++i) {
      const std::string name = absl::StrCat("w", i);
      leases.push_back(Lease(users[0], 1, {.share_as = name}));
      for (size_t user = 1; user < users.size(); ++user) {
        EXPECT_EQ(Outcome(users[user], Attach(users[user], name)), "attached");
      }
    }
    RunFor(seconds(1));
    return users;
  }
  [[nodiscard]] uint64_t Looks() const { return *state().away_looks; }
  uint64_t SpentOn(SimClient* client, const v1::ClientMessage& message) {
    world.Do("message", [&](Turn& turn) {
      world.machine().HandleMessage(client->session, message, turn);
    });
    return world.last_spent();
  }

  SimClient* owner = nullptr;
  std::vector<quota::LeaseId> leases;
};

// --- Attaches that wait.

TEST_F(MachineManyUsersTest, AttachesWhoseTimeIsOverAreRefusedSomeAtATurn) {
  SimClient* writer = Parked("a");
  const uint64_t id = Ask(writer, 1, {.share_as = "unsealed"});
  RunDevice();
  ASSERT_EQ(Outcome(writer, id), "granted");
  std::vector<std::pair<SimClient*, uint64_t>> waiting;
  for (int session = 0; session < 10; ++session) {
    SimClient* client = Parked("a");
    for (int i = 0; i < 16; ++i)
      waiting.emplace_back(client, Attach(client, "unsealed", seconds(1)));
  }
  const auto refused = [&] {
    size_t count = 0;
    for (const auto& [client, request] : waiting)
      count += Outcome(client, request) == "BAD_STATE" ? 1 : 0;
    return count;
  };
  ASSERT_EQ(refused(), 0u);
  size_t before = 0;
  int turns = 0;
  for (; before < waiting.size() && turns < 100; ++turns) {
    world.AdvanceToDue();
    const size_t now = refused();
    EXPECT_LE(now - before, 64u) << "in one turn";
    before = now;
  }
  EXPECT_EQ(before, waiting.size());
}

// Each is denied in time, and the next one is not asked for in its place.
TEST_F(MachineManyUsersTest, AttachesToALeaseThatIsAwayAsWell) {
  SimClient* writer = Parked("a");
  Lease(writer, 8, {.share_as = "away"});
  RunFor(seconds(1));
  const uint64_t id = Ask(owner, 40, {.wait = seconds(60)});
  Work();
  RunFor(seconds(1));
  ASSERT_EQ(Outcome(owner, id), "granted");
  std::vector<std::pair<SimClient*, uint64_t>> waiting;
  for (int session = 0; session < 10; ++session) {
    SimClient* client = Parked("a");
    for (int i = 0; i < 16; ++i)
      waiting.emplace_back(client, Attach(client, "away", seconds(1)));
  }
  size_t before = 0;
  for (int turns = 0; before < waiting.size() && turns < 1000; ++turns) {
    world.AdvanceToDue();
    size_t now = 0;
    for (const auto& [client, request] : waiting)
      now += Outcome(client, request) == "POOL_EXHAUSTED" ? 1 : 0;
    EXPECT_LE(now - before, 64u + 16u) << "in one turn";
    before = now;
  }
  EXPECT_EQ(before, waiting.size());
}

TEST_F(MachineManyUsersTest, FewAttachesOfASessionWaitForOneName) {
  SimClient* writer = Parked("a");
  const uint64_t id = Ask(writer, 1, {.share_as = "unsealed"});
  RunDevice();
  ASSERT_EQ(Outcome(writer, id), "granted");
  SimClient* client = Parked("a");
  std::vector<uint64_t> waiting;
  for (int i = 0; i < 16; ++i)
    waiting.push_back(Attach(client, "unsealed", seconds(60)));
  EXPECT_EQ(Outcome(client, Attach(client, "unsealed", seconds(60))),
            "TOO_MANY_REQUESTS");
  SimClient* other = Parked("a");
  EXPECT_EQ(Outcome(other, Attach(other, "unsealed", seconds(60))), "waits");
  Cancel(client, waiting[0]);
  waiting[0] = Attach(client, "unsealed", seconds(60));
  EXPECT_EQ(Outcome(client, waiting[0]), "waits") << "one has gone";
  Seal(writer, quota::LeaseId{AnswerTo(writer, id).grant().lease_id()});
  EXPECT_EQ(Outcome(client, waiting[1]), "attached");
  EXPECT_EQ(Outcome(client, waiting[0]), "BAD_STATE") << "it has it already";
}

TEST_F(MachineManyUsersTest, ATenantsUsesOfLeasesAreBounded) {
  SetTenant("few", {.max_handles = 2});
  SimClient* writer = Parked("few");
  Lease(writer, 1, {.share_as = "x"});
  Lease(writer, 1, {.share_as = "y"});
  SimClient* first = Parked("few");
  EXPECT_EQ(Outcome(first, Attach(first, "x")), "attached");
  EXPECT_EQ(Outcome(first, Attach(first, "y")), "attached");
  SimClient* second = Parked("few");
  EXPECT_EQ(Outcome(second, Attach(second, "x")), "TOO_MANY_HANDLES");
  End(first);
  EXPECT_EQ(Outcome(second, Attach(second, "x")), "attached");
}

// --- Leases that move.

TEST_F(MachineManyUsersTest, AGroupIsLookedAtOnceForWhatHasMoved) {
  Users("g");
  const uint64_t id = Ask(owner, 11, {.wait = seconds(60)});
  const uint64_t before = Looks();
  Work();
  RunFor(seconds(1));
  ASSERT_EQ(Outcome(owner, id), "granted");
  const uint64_t all = kSessions * kShared;
  EXPECT_LE(Looks() - before, 5 * all);
}

TEST_F(MachineManyUsersTest, ARestoreThatIsDeniedLooksAtEachOtherUserOnce) {
  const std::vector<SimClient*> users = Users();
  const uint64_t id = Ask(owner, 40, {.wait = seconds(60)});
  Work();
  RunFor(seconds(1));
  ASSERT_EQ(Outcome(owner, id), "granted");
  for (const quota::LeaseId lease : leases) ASSERT_EQ(Where(lease), "evicted");
  const uint64_t before = Looks();
  ASSERT_EQ(Outcome(users[0], Restore(users[0], seconds(0))), "POOL_EXHAUSTED");
  const uint64_t all = kSessions * kShared;
  EXPECT_LE(Looks() - before, 3 * all);
}

// --- The asker pays for what is looked at.

TEST_F(MachineManyUsersTest, TurningAGateCostsAsMuchAsTheSessionHasLeases) {
  SimClient* client = Parked("a");
  for (uint64_t i = 0; i < kShared; ++i) Lease(client, 1);
  v1::ClientMessage message;
  message.set_request_id(1'000);
  message.mutable_set_gate()->set_on(false);
  EXPECT_GE(SpentOn(client, message), kShared);
}

TEST_F(MachineManyUsersTest, ARestoreThatCannotBeServedCostsAsMuch) {
  const std::vector<SimClient*> users = Users();
  const uint64_t id = Ask(owner, 40, {.wait = seconds(60)});
  Work();
  RunFor(seconds(1));
  ASSERT_EQ(Outcome(owner, id), "granted");
  v1::ClientMessage message;
  message.set_request_id(1'000);
  message.mutable_restore();
  EXPECT_GE(SpentOn(users[0], message), kSessions * kShared)
      << "all others are looked at, too";
}

// --- Pauses.

TEST_F(MachineManyUsersTest,
       SessionsThatAreBoundTogetherAreLookedAtOnceARound) {
  const std::vector<SimClient*> users = Users();
  for (SimClient* user : users) ASSERT_TRUE(Enter(user));
  Ask(owner, 40, {.wait = seconds(60)});
  // The leases are found some at a time.
  for (int i = 0; i < 50 && !GateOf(users[0]).paused(); ++i)
    world.Advance(milliseconds(1));
  ASSERT_TRUE(GateOf(users[0]).paused());
  ASSERT_EQ(state().pausing->size(), kSessions);
  const uint64_t all = kSessions * kShared;
  const uint64_t before = state().pause_round->looks;
  for (int i = 0; i < 100; ++i) {
    world.Advance(milliseconds(1));
    const PauseRound& round = *state().pause_round;
    ASSERT_LE(round.looks - round.began_at, 2 * all) << "in a round";
  }
  EXPECT_GE(state().pause_round->looks - before, 5 * all);
  EXPECT_TRUE(GateOf(users[0]).paused());
  for (SimClient* user : users) Park(user);
  RunFor(milliseconds(50));
  EXPECT_EQ(Where(leases[0]), "evicted");
}

}  // namespace
}  // namespace gmb::broker
