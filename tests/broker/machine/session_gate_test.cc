// The broker's side of one gate (docs/gate.md): what it believes, and what a
// client that writes anything into its page can make of that.
#include "broker/machine/session_gate.h"

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "broker/machine/gates.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"
#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

using ipc::GateState;
using ipc::GateWord;
using quota::Gate;
using quota::Instant;

constexpr int64_t kSecond = 1'000'000'000;

class SessionGateTest : public testing::Test {
 protected:
  SessionGateTest() { Put(ipc::kGateOff); }
  void Put(GateWord word, int64_t left_at_ns = 0) {
    cells->left_at_ns.store(static_cast<uint64_t>(left_at_ns));
    cells->word.store(word.bits());
  }
  // The client was woken then, and has parked again.
  void Use(uint64_t epoch, int64_t woken_at_ns, int64_t left_at_ns) {
    cells->woken_at_ns.store(static_cast<uint64_t>(woken_at_ns));
    Put(GateWord(GateState::kParked, 0, epoch), left_at_ns);
  }
  [[nodiscard]] GateWord Word() const { return GateWord(cells->word.load()); }
  // The broker's moves.
  void TurnOn() { gates.SetOn(&session, true); }
  bool Close() { return gates.CloseAll({&session}); }
  bool Reopen() { return gates.Reopen(&session); }
  void Pause(Instant until) { gates.Pause(&session, until); }
  void Withdraw() { gates.Withdraw(&session); }

  std::shared_ptr<ipc::GateCells> cells = std::make_shared<ipc::GateCells>();
  State state{MachineOptions(), /*host_pool_bytes=*/0};
  Gates gates{state};
  Session session{.id = 1,
                  .peer = {},
                  .token = {},
                  .tenant = quota::TenantId{1},
                  .since = {},
                  .gate = Placed<SessionGate>(std::make_unique<SessionGate>(
                      cells, Instant{10 * kSecond})),
                  .talk = {},
                  .group = {},
                  .never_lends = {},
                  .leases = {},
                  .leased_bytes = {},
                  .last_move = {},
                  .waking = {},
                  .trims = {}};
  const SessionGate& gate = *session.gate;
};

TEST_F(SessionGateTest, UntilTheBrokerHasAgreedItIsOffWhateverTheWordSays) {
  for (const GateWord word :
       {ipc::kGateOff, GateWord(GateState::kParked, 0, 3), GateWord(0)}) {
    Put(word);
    EXPECT_EQ(gate.Look(Instant{11 * kSecond}), Gate::kOff) << word.bits();
  }
}

TEST_F(SessionGateTest, OnlyAWordThatReadsParkedWithoutScopesIsParked) {
  TurnOn();
  struct Row {
    GateWord word;
    Gate gate;
  };
  for (const Row& row : std::vector<Row>{
           {GateWord(GateState::kParked, 0, 3), Gate::kParked},
           {GateWord(GateState::kParked, 0, 3, true), Gate::kParked},
           {GateWord(GateState::kParked, 1, 3), Gate::kActive},
           {GateWord(GateState::kOpen, 0, 3), Gate::kActive},
           {GateWord(GateState::kOpen, 5, 3), Gate::kActive},
           {GateWord(GateState::kSync, 0, 3), Gate::kActive},
           // The client has no business to write this.
           {GateWord(GateState::kClosed, 0, 3), Gate::kActive},
           {GateWord(0), Gate::kActive},
           {GateWord(~uint64_t{0}), Gate::kActive},
       }) {
    Put(row.word);
    EXPECT_EQ(gate.Look(Instant{11 * kSecond}), row.gate) << row.word.bits();
    const bool parked = row.gate == Gate::kParked;
    EXPECT_EQ(Close(), parked) << row.word.bits();
    if (parked) {
      EXPECT_TRUE(Reopen());
    } else {
      EXPECT_EQ(Word(), row.word) << "it is let alone";
    }
  }
}

TEST_F(SessionGateTest, ClosedItIsTheBrokersWhateverTheClientWrites) {
  TurnOn();
  Put(GateWord(GateState::kParked, 0, 7));
  EXPECT_TRUE(Close());
  EXPECT_EQ(Word(), GateWord(GateState::kClosed, 0, 7)) << "the same epoch";
  EXPECT_TRUE(Close()) << "it is closed already";
  Put(GateWord(GateState::kOpen, 1, 8));
  EXPECT_EQ(gate.Look(Instant{12 * kSecond}), Gate::kClosed);
  EXPECT_TRUE(gate.closed());
  EXPECT_FALSE(Reopen()) << "it was written over";
  EXPECT_FALSE(gate.closed());
  EXPECT_EQ(Word(), GateWord(GateState::kOpen, 1, 8)) << "and is let alone";
}

TEST_F(SessionGateTest, ReopenedItIsParkedWithTheEpochThatItHad) {
  TurnOn();
  Put(GateWord(GateState::kParked, 0, 7));
  EXPECT_TRUE(Close());
  EXPECT_TRUE(Reopen());
  EXPECT_EQ(Word(), GateWord(GateState::kParked, 0, 7));
  EXPECT_TRUE(Reopen()) << "it is open already";
}

TEST_F(SessionGateTest, AnEpochThatChangedBehindAClosedGateIsNoticed) {
  TurnOn();
  Put(GateWord(GateState::kParked, 0, 7));
  EXPECT_TRUE(Close());
  Put(GateWord(GateState::kClosed, 0, 8));
  EXPECT_FALSE(Reopen());
}

TEST_F(SessionGateTest, APauseIsOneBitAndEndsWithTheClose) {
  TurnOn();
  Put(GateWord(GateState::kOpen, 2, 7));
  EXPECT_FALSE(gate.pausing_until().has_value());
  Pause(Instant{15 * kSecond});
  EXPECT_EQ(Word(), GateWord(GateState::kOpen, 2, 7, true));
  EXPECT_EQ(gate.pausing_until(), Instant{15 * kSecond});
  Withdraw();
  EXPECT_EQ(Word(), GateWord(GateState::kOpen, 2, 7));
  EXPECT_FALSE(gate.pausing_until().has_value());
  Pause(Instant{15 * kSecond});
  Put(GateWord(GateState::kParked, 0, 7, true));
  EXPECT_TRUE(Close());
  EXPECT_EQ(Word(), GateWord(GateState::kClosed, 0, 7)) << "without the bit";
  EXPECT_FALSE(gate.pausing_until().has_value());
}

// A copy is true as long as nobody was in: the first one in changes the epoch.
TEST_F(SessionGateTest, MemoryIsUnusedAsLongAsTheEpochStandsAndNobodyIsIn) {
  Put(GateWord(GateState::kParked, 0, 7));
  EXPECT_TRUE(gate.UnusedSince(7));
  EXPECT_FALSE(gate.UnusedSince(6));
  Put(GateWord(GateState::kOpen, 1, 8));
  EXPECT_FALSE(gate.UnusedSince(7));
  Put(GateWord(GateState::kParked, 0, 8));
  EXPECT_FALSE(gate.UnusedSince(7)) << "somebody was in meanwhile";
  Put(GateWord(GateState::kClosed, 0, 8));
  EXPECT_TRUE(gate.UnusedSince(8));
  Put(GateWord(GateState::kOpen, 0, 8));
  EXPECT_FALSE(gate.UnusedSince(8)) << "the GPU may be at work";
}

TEST_F(SessionGateTest, IdleTimeBeginsWhenTheLastScopeWentOut) {
  TurnOn();
  Put(GateWord(GateState::kOpen, 1, 1));
  (void)gate.Look(Instant{11 * kSecond});
  EXPECT_FALSE(gate.idle_since().has_value());
  Put(GateWord(GateState::kParked, 0, 1), 12 * kSecond);
  (void)gate.Look(Instant{15 * kSecond});
  EXPECT_EQ(gate.idle_since(), Instant{12 * kSecond});
  (void)gate.Look(Instant{20 * kSecond});
  EXPECT_EQ(gate.idle_since(), Instant{12 * kSecond});
}

TEST_F(SessionGateTest, AStampOutsideOfTwoLooksIsNotBelieved) {
  TurnOn();
  Put(GateWord(GateState::kOpen, 1, 1));
  (void)gate.Look(Instant{20 * kSecond});
  for (const int64_t lie : {int64_t{1}, 999 * kSecond, int64_t{-1}}) {
    Put(GateWord(GateState::kOpen, 1, 1));
    (void)gate.Look(Instant{20 * kSecond});
    Put(GateWord(GateState::kParked, 0, 1), lie);
    (void)gate.Look(Instant{30 * kSecond});
    ASSERT_TRUE(gate.idle_since().has_value());
    EXPECT_GE(*gate.idle_since(), Instant{20 * kSecond}) << lie;
    EXPECT_LE(*gate.idle_since(), Instant{30 * kSecond}) << lie;
  }
}

TEST_F(SessionGateTest, HowOftenAndHowLongItIsUsedIsSeenFromLookToLook) {
  TurnOn();
  EXPECT_EQ(gate.usual_gap(), std::nullopt);
  EXPECT_EQ(gate.usual_use(), std::nullopt);
  Use(1, 11 * kSecond, 11 * kSecond + 40'000);
  (void)gate.Look(Instant{12 * kSecond});
  EXPECT_EQ(gate.usual_gap(), std::nullopt) << "used once";
  EXPECT_EQ(gate.usual_use(), quota::Nanoseconds(40'000));
  Use(2, 13 * kSecond, 13 * kSecond + 80'000);
  (void)gate.Look(Instant{14 * kSecond});
  EXPECT_EQ(gate.usual_gap(), quota::Nanoseconds(2 * kSecond));
  EXPECT_EQ(gate.usual_use(), quota::Nanoseconds(50'000))
      << "the newest counts for a quarter";
  (void)gate.Look(Instant{24 * kSecond});
  EXPECT_EQ(gate.usual_gap(), quota::Nanoseconds(10 * kSecond))
      << "it has rested for longer than usual";
  EXPECT_EQ(gate.usual_use(), quota::Nanoseconds(50'000)) << "no new use";
}

// The gate's page of a client that never wrote a wake: an older library.
TEST_F(SessionGateTest, WithoutAWakeNothingIsSaidOfUses) {
  TurnOn();
  Put(GateWord(GateState::kParked, 0, 1), 11 * kSecond);
  (void)gate.Look(Instant{12 * kSecond});
  Put(GateWord(GateState::kParked, 0, 2), 13 * kSecond);
  (void)gate.Look(Instant{14 * kSecond});
  EXPECT_TRUE(gate.usual_gap().has_value());
  EXPECT_EQ(gate.usual_use(), std::nullopt);
}

TEST_F(SessionGateTest, NoUseIsLongerThanTheSessionNorEndsBeforeItBegan) {
  TurnOn();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  struct Row {
    int64_t woken_at;
    int64_t left_at;
  };
  uint64_t epoch = 0;
  for (const Row& row : std::vector<Row>{{13 * kSecond, 12 * kSecond},
                                         {kMax, 0},
                                         {-1, kMax},
                                         {1, kMax},
                                         {kMax, -1},
                                         {1, 1}}) {
    Use(++epoch, row.woken_at, row.left_at);
    (void)gate.Look(Instant{20 * kSecond});
    if (!gate.usual_use().has_value()) continue;
    EXPECT_GE(*gate.usual_use(), quota::Nanoseconds(0)) << row.woken_at;
    EXPECT_LE(*gate.usual_use(), quota::Nanoseconds(10 * kSecond))
        << row.woken_at << " " << row.left_at;
  }
}

}  // namespace
}  // namespace gmb::broker
