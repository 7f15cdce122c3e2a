// Acquire, Release and Cancel: what a request is answered, and when
// (docs/quota.md, "A request"; docs/protocol.md, section 6).
#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class MachineRequestsTest : public MachineFixture {
 protected:
  explicit MachineRequestsTest(const MachineWorld& shape = {})
      : MachineFixture(shape) {}
  // Without gates all is hard.
  void SetUp() override {
    SetTenant("a", {.guarantee = 20, .limit = 40});
    SetTenant("b");
    SetTenant("c");
    a = Connect("a");
    b = Connect("b");
    c = Connect("c");
  }
  SimClient* a = nullptr;
  SimClient* b = nullptr;
  SimClient* c = nullptr;
};

// The example of docs/quota.md, with 64 instead of 100.
TEST_F(MachineRequestsTest, TheExampleOfTheRules) {
  const quota::LeaseId of_b = Lease(b, 32);
  EXPECT_EQ(InPool().free_to_borrow_bytes, 12 * kGranule);
  uint64_t id = Ask(c, 20);
  EXPECT_EQ(Outcome(c, id), "POOL_EXHAUSTED");
  EXPECT_EQ(AnswerTo(c, id).error().detail().deficit_bytes(), 8 * kGranule);
  id = Ask(c, 50, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(c, id), "OVERCOMMITTED");
  EXPECT_EQ(AnswerTo(c, id).error().detail().deficit_bytes(), 6 * kGranule);
  const uint64_t waiting = Ask(c, 20, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(c, waiting), "waits");
  const quota::LeaseId of_a = Lease(a, 20);  // within, whoever waits
  id = Ask(a, 30);
  EXPECT_EQ(Outcome(a, id), "TENANT_LIMIT");
  EXPECT_EQ(AnswerTo(a, id).error().detail().deficit_bytes(), 10 * kGranule);
  Release(b, of_b);
  RunDevice();
  EXPECT_EQ(Outcome(c, waiting), "granted");
  EXPECT_EQ(Resident("c"), 20u);
  const v1::Change change = SetTenant("b", {.guarantee = 40});
  EXPECT_EQ(change.state(), v1::Change::PENDING);
  EXPECT_EQ(change.remaining_bytes(), 16 * kGranule);
  EXPECT_EQ(Of("b").effective_guarantee_bytes, 24 * kGranule);
  Release(a, of_a);
  EXPECT_EQ(Of("b").effective_guarantee_bytes, 24 * kGranule)
      << "what it gave back is still its own guarantee";
}

// Nobody needs it yet, so nothing is done for it and nobody hears of it.
TEST_F(MachineRequestsTest, AheadOfNeedNothingIsWaitedForAndARefusalIsNoEvent) {
  Lease(b, 32);
  const auto ask = [&](uint64_t granules) {
    v1::ClientMessage message;
    v1::Acquire& acquire = *message.mutable_acquire();
    acquire.set_bytes(granules * kGranule);
    acquire.mutable_wait()->set_seconds(60);
    acquire.set_ahead_of_need(true);
    const uint64_t id = Send(c, message);
    RunDevice();
    return Outcome(c, id);
  };
  EXPECT_EQ(ask(20), "POOL_EXHAUSTED");
  EXPECT_EQ(ask(12), "granted");
  EXPECT_EQ(ask(1), "POOL_EXHAUSTED");
  EXPECT_TRUE(Events("acquire_denied").empty());
  EXPECT_TRUE(Events("acquire_waiting").empty());
  EXPECT_EQ(Outcome(c, Ask(c, 1)), "POOL_EXHAUSTED");
  EXPECT_EQ(Events("acquire_denied").size(), 1u);
}

TEST_F(MachineRequestsTest, WhatHelpsNoWaitIsRefusedAtOnceAlsoWithOne) {
  SetTenant("few", {.max_handles = 2});
  struct Row {
    std::string tenant;
    uint64_t granules;
    Wish wish;
    std::string answer;
    uint64_t deficit;
  };
  for (const quota::Nanoseconds wait : {seconds(0), seconds(60)}) {
    for (const Row& row : {
             Row{"b", 0, {.wait = wait}, "BAD_REQUEST", 0},
             Row{"b", 1, {.wait = wait, .device = "no"}, "NO_SUCH_DEVICE", 0},
             Row{"a", 41, {.wait = wait}, "TENANT_LIMIT", 1},
             Row{"b", 45, {.wait = wait}, "OVERCOMMITTED", 1},
             Row{"b", 65, {.wait = wait}, "TENANT_LIMIT", 1},
             Row{"few", 6, {.wait = wait}, "TOO_MANY_HANDLES", 0},
         }) {
      SimClient* client = Connect(row.tenant);
      const uint64_t id = Ask(client, row.granules, row.wish);
      EXPECT_EQ(Outcome(client, id), row.answer) << row.granules;
      EXPECT_EQ(AnswerTo(client, id).error().detail().deficit_bytes(),
                row.deficit * kGranule)
          << row.granules;
      EXPECT_EQ(AnswerTo(client, id).error().detail().retry_after().seconds(),
                0);
    }
  }
  EXPECT_EQ(Waiting(), 0u);
}

TEST_F(MachineRequestsTest, BytesAreRoundedUpAndTheGrantSaysHowMany) {
  for (const auto& [bytes, granules] :
       std::vector<std::pair<uint64_t, uint64_t>>{
           {1, 1}, {kGranule, 1}, {kGranule + 1, 2}, {3 * kGranule - 1, 3}}) {
    v1::ClientMessage message;
    message.mutable_acquire()->set_bytes(bytes);
    const uint64_t id = Send(b, message);
    RunDevice();
    EXPECT_EQ(AnswerTo(b, id).grant().bytes(), granules * kGranule) << bytes;
    EXPECT_EQ(AnswerTo(b, id).grant().device(), "sim-1");
  }
}

TEST_F(MachineRequestsTest, WhatIsNoSizeAndNoContentsIsABadRequest) {
  v1::ClientMessage message;
  for (const uint64_t bytes : {uint64_t{0}, ~uint64_t{0}, ~uint64_t{0} - 1,
                               quota::kMaxPoolBytes + 1}) {
    message.mutable_acquire()->set_bytes(bytes);
    const uint64_t id = Send(b, message);
    EXPECT_EQ(Outcome(b, id), "BAD_REQUEST") << bytes;
    EXPECT_EQ(AnswerTo(b, id).error().detail().field(), "bytes");
  }
  message.mutable_acquire()->set_bytes(kGranule);
  message.mutable_acquire()->set_contents(static_cast<v1::Contents>(99));
  const uint64_t id = Send(b, message);
  EXPECT_EQ(Outcome(b, id), "BAD_REQUEST");
  EXPECT_EQ(AnswerTo(b, id).error().detail().field(), "contents");
}

// --- Without a wait, and with one.

TEST_F(MachineRequestsTest, WithoutAWaitNothingIsTakenFromOthers) {
  SimClient* idle = Parked("b");
  const quota::LeaseId lease = Lease(idle, 60);
  const uint64_t id = Ask(a, 10);  // within its guarantee
  EXPECT_EQ(Outcome(a, id), "POOL_EXHAUSTED");
  RunFor(seconds(1));
  EXPECT_EQ(Where(lease), "mapped");
  EXPECT_EQ(Told(idle, v1::BrokerMessage::kEvict), 0u);
}

TEST_F(MachineRequestsTest, AWaitEndsAtItsDeadlineAndNotBefore) {
  Lease(b, 44);
  const uint64_t id = Ask(c, 4, {.wait = seconds(3)});
  RunFor(seconds(3) - milliseconds(1));
  EXPECT_EQ(Outcome(c, id), "waits");
  RunFor(milliseconds(1));
  EXPECT_EQ(Outcome(c, id), "POOL_EXHAUSTED");
  EXPECT_EQ(AnswerTo(c, id).error().detail().retry_after().seconds(), 1);
}

TEST_F(MachineRequestsTest, WhatComesAtTheMomentOfTheDeadlineIsTooLate) {
  const quota::LeaseId lease = Lease(b, 44);
  const uint64_t id = Ask(c, 4, {.wait = seconds(3)});
  world.LetPass(seconds(3));
  Release(b, lease);
  RunDevice();
  EXPECT_EQ(Outcome(c, id), "POOL_EXHAUSTED");
}

TEST_F(MachineRequestsTest, AWaitIsAtMostAnHourAndNeverNegative) {
  Lease(b, 44);
  const uint64_t for_ever = Ask(c, 4, {.wait = hours(1000)});
  const uint64_t negative = Ask(c, 4, {.wait = -seconds(5)});
  EXPECT_EQ(Outcome(c, negative), "POOL_EXHAUSTED");
  world.Advance(hours(1) - seconds(1));
  EXPECT_EQ(Outcome(c, for_ever), "waits");
  world.Advance(seconds(1));
  EXPECT_EQ(Outcome(c, for_ever), "POOL_EXHAUSTED");
}

TEST_F(MachineRequestsTest, OneThatWaitsIsToldSoOnceAndHowManyAreAhead) {
  Lease(b, 44);
  const uint64_t first = Ask(c, 4, {.wait = seconds(60)});
  const uint64_t second = Ask(c, 4, {.wait = seconds(60)});
  RunFor(seconds(5));
  std::vector<std::pair<uint64_t, uint64_t>> told;
  for (const v1::BrokerMessage& message : c->said) {
    if (message.has_waiting())
      told.emplace_back(message.request_id(), message.waiting().ahead());
  }
  EXPECT_EQ(told, (std::vector<std::pair<uint64_t, uint64_t>>{{first, 0},
                                                              {second, 1}}));
}

TEST_F(MachineRequestsTest, ItsOwnLimitHoldsBackItselfAndNobodyElse) {
  const quota::LeaseId lease = Lease(a, 40);
  const uint64_t own = Ask(a, 10, {.wait = seconds(5)});
  EXPECT_EQ(Outcome(a, own), "waits");
  EXPECT_EQ(Outcome(b, Ask(b, 10)), "granted") << "it blocks nobody";
  RunFor(seconds(5));
  EXPECT_EQ(Outcome(a, own), "TENANT_LIMIT");
  EXPECT_EQ(AnswerTo(a, own).error().detail().deficit_bytes(), 10 * kGranule);
  const uint64_t again = Ask(a, 10, {.wait = seconds(5)});
  Release(a, lease);
  RunDevice();
  EXPECT_EQ(Outcome(a, again), "granted");
}

TEST_F(MachineRequestsTest, WithinAGuaranteeComesFirstThenTheLowestBorrower) {
  const quota::LeaseId big = Lease(b, 40);
  const quota::LeaseId small = Lease(c, 4);
  const uint64_t of_c = Ask(c, 40, {.wait = seconds(60)});
  const uint64_t of_b = Ask(b, 4, {.wait = seconds(60)});
  const uint64_t of_a = Ask(a, 30, {.wait = seconds(60)});  // above its 20
  EXPECT_EQ(Outcome(a, of_a), "waits");
  // b has borrowed 40, c 4, a nothing.
  Release(b, big);
  RunDevice();
  EXPECT_EQ(Outcome(a, of_a), "granted");
  Release(c, small);
  RunDevice();
  EXPECT_EQ(Outcome(c, of_c), "waits");
  EXPECT_EQ(Outcome(b, of_b), "granted") << "what fits may pass at first";
}

TEST_F(MachineRequestsTest, AChangeThatMakesItImpossibleDeniesWhoWaits) {
  Lease(b, 44);
  const uint64_t id = Ask(c, 20, {.wait = seconds(60)});
  EXPECT_EQ(Outcome(c, id), "waits");
  SetTenant("c", {.limit = 10});
  EXPECT_EQ(Outcome(c, id), "TENANT_LIMIT");
  EXPECT_EQ(AnswerTo(c, id).error().detail().deficit_bytes(), 10 * kGranule);
}

// --- Release and Cancel.

TEST_F(MachineRequestsTest, ALeaseIsReleasedOnceAndByItsOwnSession) {
  const quota::LeaseId lease = Lease(b, 4);
  SimClient* sibling = Connect("b");
  EXPECT_EQ(Outcome(sibling, Release(sibling, lease)), "NO_SUCH_LEASE");
  EXPECT_EQ(Outcome(b, Release(b, lease)), "released");
  EXPECT_EQ(Outcome(b, Release(b, lease)), "NO_SUCH_LEASE");
  EXPECT_EQ(Outcome(b, Release(b, {12345})), "NO_SUCH_LEASE");
  EXPECT_EQ(Resident("b"), 0u);
}

// It does not exist for the client before its Grant.
TEST_F(MachineRequestsTest, ALeaseThatIsBeingMadeCannotBeNamed) {
  const uint64_t id = Ask(b, 30);  // more than lies ready
  const quota::LeaseId lease = TheLease();
  EXPECT_EQ(Outcome(b, Release(b, lease)), "NO_SUCH_LEASE");
  EXPECT_EQ(Outcome(b, Seal(b, lease)), "NO_SUCH_LEASE");
  RunDevice();
  EXPECT_EQ(Outcome(b, id), "granted");
}

TEST_F(MachineRequestsTest, ACancelledOneIsAnsweredSoAndMakesWayForOthers) {
  Lease(b, 44);
  const uint64_t id = Ask(c, 20, {.wait = seconds(60)});
  Cancel(c, id);
  EXPECT_EQ(Outcome(c, id), "CANCELLED_BY_CLIENT");
  EXPECT_EQ(Waiting(), 0u);
  Cancel(c, id);  // nothing itself
  EXPECT_EQ(c->said.back().request_id(), id);
}

TEST_F(MachineRequestsTest, ACancelOfWhatWasAnsweredOrNeverAskedIsNothing) {
  const uint64_t id = Ask(b, 4);
  RunDevice();
  const size_t said = b->said.size();
  Cancel(b, id);
  Cancel(b, 99);
  Cancel(c, id);
  EXPECT_EQ(b->said.size(), said);
  EXPECT_EQ(Resident("b"), 4u);
}

TEST_F(MachineRequestsTest, ACancelOfTheHeadLetsTheNextOneIn) {
  Lease(b, 40);
  const uint64_t head = Ask(c, 30, {.wait = seconds(60)});
  RunFor(milliseconds(1500));  // its claim holds
  const uint64_t next = Ask(Connect("c"), 4, {.wait = seconds(60)});
  SimClient* waiter = world.clients().back();
  EXPECT_EQ(Outcome(waiter, next), "waits");
  Cancel(c, head);
  RunDevice();
  EXPECT_EQ(Outcome(waiter, next), "granted");
}

// --- Order and repetition.

TEST_F(MachineRequestsTest, SlabsAreSentBeforeTheGrantInOrderAndComplete) {
  const uint64_t id = Ask(b, 29);
  RunDevice();
  uint64_t bytes = 0;
  uint32_t next = 0;
  uint64_t frame = 0;
  for (const v1::Slabs& packet : b->frames) {
    EXPECT_EQ(packet.request_id(), id);
    EXPECT_EQ(packet.move(), 0u);
    EXPECT_EQ(packet.first_slab(), next);
    EXPECT_EQ(packet.frame_id(), ++frame);
    EXPECT_EQ(packet.slabs_in_lease(), AnswerTo(b, id).grant().slabs());
    next += static_cast<uint32_t>(packet.slab_bytes_size());
    for (const uint64_t slab : packet.slab_bytes()) bytes += slab;
  }
  EXPECT_EQ(next, AnswerTo(b, id).grant().slabs());
  EXPECT_EQ(bytes, 29 * kGranule);
  // The journal knows it before, and the client after the slabs.
  std::vector<std::string> order;
  for (const std::string& line : world.last_lines()) {
    for (const char* word : {"record", "slabs", "say"}) {
      if (line.rfind(word, 0) == 0 && (order.empty() || order.back() != word))
        order.emplace_back(word);
    }
  }
  ASSERT_GE(order.size(), 3u);
  EXPECT_EQ(std::vector<std::string>(order.end() - 3, order.end()),
            (std::vector<std::string>{"record", "slabs", "say"}));
}

TEST_F(MachineRequestsTest, ARefusedRequestHasSentNoSlabs) {
  Ask(b, 60);
  EXPECT_TRUE(b->frames.empty());
}

TEST_F(MachineRequestsTest, ARequestIsCarriedOutOnceForItsId) {
  const uint64_t id = Ask(b, 4);
  RunDevice();
  const std::string first = AnswerTo(b, id).SerializeAsString();
  v1::ClientMessage again;  // whatever it contains
  again.set_request_id(id);
  again.mutable_acquire()->set_bytes(30 * kGranule);
  b->said.clear();
  b->frames.clear();
  world.Send(b, again);
  EXPECT_EQ(AnswerTo(b, id).SerializeAsString(), first);
  EXPECT_TRUE(b->frames.empty()) << "they are with the client, or on their way";
  EXPECT_EQ(Resident("b"), 4u);
}

TEST_F(MachineRequestsTest, RepeatedWhileItWaitsItIsTheSameRequest) {
  const quota::LeaseId lease = Lease(b, 44);
  const uint64_t id = Ask(c, 4, {.wait = seconds(60)});
  v1::ClientMessage again;
  again.set_request_id(id);
  again.mutable_acquire()->set_bytes(4 * kGranule);
  world.Send(c, again);
  EXPECT_EQ(Waiting(), 1u);
  Release(b, lease);
  RunDevice();
  EXPECT_EQ(Told(c, v1::BrokerMessage::kGrant), 1u);
  EXPECT_EQ(Resident("c"), 4u);
}

TEST_F(MachineRequestsTest, IdsAreAboveZeroAndMayNotGoBackBehindTheForgotten) {
  v1::ClientMessage message;
  message.mutable_get_quota();
  world.Send(b, message);
  EXPECT_EQ(Outcome(b, 0), "BAD_REQUEST");
  EXPECT_EQ(AnswerTo(b, 0).error().detail().field(), "request_id");
  // 1,024 answers are kept, and reports are not.
  for (int i = 0; i < 1100; ++i) Release(b, {7});
  const uint64_t last = b->last_request;
  message.set_request_id(1);
  world.Send(b, message);
  EXPECT_EQ(Outcome(b, 1), "BAD_REQUEST") << "it is forgotten";
  const size_t said = b->said.size();
  message.set_request_id(last);
  world.Send(b, message);
  ASSERT_EQ(b->said.size(), said + 1);
  EXPECT_EQ(Outcome(b, last), "NO_SUCH_LEASE") << "the kept answer";
}

TEST_F(MachineRequestsTest, AReportIsMadeAnewWhenItIsAskedForAgain) {
  v1::ClientMessage message;
  message.mutable_get_quota();
  const uint64_t id = Send(b, message);
  EXPECT_EQ(AnswerTo(b, id).quota_report().quotas(0).leased_bytes(), 0u);
  Lease(b, 4);
  message.set_request_id(id);
  world.Send(b, message);
  EXPECT_EQ(AnswerTo(b, id).quota_report().quotas(0).leased_bytes(),
            4 * kGranule);
}

TEST_F(MachineRequestsTest, AKindThatNobodyKnowsIsABadRequest) {
  EXPECT_EQ(Outcome(b, Send(b, v1::ClientMessage())), "BAD_REQUEST");
}

TEST_F(MachineRequestsTest, AMessageOfASessionThatEndedIsNothing) {
  const SimClient gone = *b;
  End(b);
  v1::ClientMessage message;
  message.set_request_id(1);
  message.mutable_acquire()->set_bytes(kGranule);
  world.Do("late", [&](Turn& turn) {
    world.machine().HandleMessage(gone.session, message, turn);
    EXPECT_TRUE(turn.TakeEffects().empty());
  });
}

// --- Bounds.

class MachineFewRequestsTest : public MachineRequestsTest {
 protected:
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.pools = 2;
    shape.options.max_requests_per_session = 3;
    return shape;
  }
  MachineFewRequestsTest() : MachineRequestsTest(Shape()) {}
};

TEST_F(MachineFewRequestsTest, UnansweredOnesAreBounded) {
  Lease(b, 44, {.device = "sim-1"});
  const Wish wish{.wait = seconds(60), .device = "sim-1"};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Outcome(c, Ask(c, 9, wish)), "waits");
  const uint64_t refused = Ask(c, 9, wish);
  EXPECT_EQ(Outcome(c, refused), "TOO_MANY_REQUESTS");
  EXPECT_GT(AnswerTo(c, refused).error().detail().retry_after().nanos(), 0);
  Cancel(c, 1);
  EXPECT_EQ(Outcome(c, Ask(c, 9, wish)), "waits") << "an answered one is none";
  SimClient* another = Connect("c");
  EXPECT_EQ(Outcome(another, Ask(another, 9, wish)), "waits");
}

TEST_F(MachineFewRequestsTest, WithSeveralDevicesOneHasToBeNamed) {
  const uint64_t id = Ask(b, 1);
  EXPECT_EQ(Outcome(b, id), "NO_SUCH_DEVICE");
  EXPECT_EQ(AnswerTo(b, id).error().detail().field(), "device");
  const quota::LeaseId lease = Lease(b, 1, {.device = "sim-2"});
  EXPECT_EQ(LeaseView(lease).pool, quota::PoolId{2});
  EXPECT_EQ(Resident("b"), 0u) << "each device has a pool of its own";
}

}  // namespace
}  // namespace gmb::broker
