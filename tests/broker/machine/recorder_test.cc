// The end of a turn writes down what it has changed: each thing once, and ids
// in blocks, before anybody knows one of them.
#include "broker/machine/recorder.h"

#include <chrono>
#include <vector>

#include "broker/machine/state.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kBlock = Recorder::kIdsAtOnce;

MachineOptions Options(bool recorded) {
  MachineOptions options;
  options.recorded = recorded;
  return options;
}

RecordChanges Written(State& state) {
  RecordChanges changes;
  Recorder(state).Write(&changes);
  return changes;
}

TEST(RecorderTest, WhatHasEndedIsNamedOnceInTheOrderOfIds) {
  State state(Options(true), 0);
  Recorder recorder(state);
  for (const uint64_t id : {9, 4, 9, 7, 4}) {
    recorder.Touch(quota::LeaseId{id});
    recorder.TouchSession(id + 100);
  }
  RecordChanges changes = Written(state);
  EXPECT_THAT(changes.ended_leases, ElementsAre(4, 7, 9));
  EXPECT_THAT(changes.ended_sessions, ElementsAre(104, 107, 109));
  EXPECT_THAT(changes.leases, IsEmpty());
  EXPECT_THAT(changes.sessions, IsEmpty());
  EXPECT_TRUE(Written(state).empty()) << "it is written down by now";
}

TEST(RecorderTest, WhereNothingIsRecordedNothingIsRemembered) {
  State state(Options(false), 0);
  Recorder recorder(state);
  recorder.Touch(quota::LeaseId{1});
  recorder.TouchSession(1);
  recorder.TouchPool(quota::PoolId{1});
  EXPECT_TRUE(Written(state).empty());
  EXPECT_THAT(state.record_news->leases, IsEmpty());
  EXPECT_THAT(state.record_news->sessions, IsEmpty());
  EXPECT_THAT(state.record_news->pools, IsEmpty());
}

TEST(RecorderTest, IdsAreTakenInABlockAtFirst) {
  State state(Options(true), 0);
  const RecordChanges changes = Written(state);
  ASSERT_TRUE(changes.head.has_value());
  EXPECT_EQ(changes.head->session_ids_until,
            state.sessions->next_id() + kBlock);
  EXPECT_EQ(changes.head->lease_ids_until, 1 + kBlock);
  EXPECT_FALSE(Written(state).head.has_value()) << "it has enough of them";
}

// One that takes over is written down though it has ids enough.
TEST(RecorderTest, AnotherBrokersHeadIsWrittenAtOnceAndTakesNothingBack) {
  State state(Options(true), 0);
  (void)Written(state);
  const HeadRecord head{.session_ids_until = 10 * kBlock,
                        .lease_ids_until = 20 * kBlock,
                        .generation = 3};
  Recorder(state).SetHead(head);
  const RecordChanges changes = Written(state);
  ASSERT_TRUE(changes.head.has_value());
  EXPECT_EQ(*changes.head, head);
  EXPECT_FALSE(Written(state).head.has_value());
}

class RecorderWorldTest : public MachineFixture {
 protected:
  void SetUp() override { SetTenant("a"); }
  [[nodiscard]] const HeadRecord& Head() const {
    return state().record_news->head;
  }
};

// That the head covers each id in time is checked by the world.
TEST_F(RecorderWorldTest, TheNextBlockIsTakenBeforeTheLastOneIsUsedUp) {
  world.CheckEvery(32);
  const HeadRecord first = Head();
  uint64_t last = 0;
  for (uint64_t i = 0; i <= kBlock; ++i) {
    SimClient* client = Connect("a");
    last = client->session;  // a client ends with its session
    if (i % 2 == 0) Ask(client, 1);
    End(client);
  }
  EXPECT_GT(last, kBlock);
  EXPECT_GT(Head().session_ids_until, first.session_ids_until);
  EXPECT_LE(Head().session_ids_until, first.session_ids_until + kBlock + 1)
      << "one block, and not one for each";
  EXPECT_LE(Head().lease_ids_until, first.lease_ids_until + kBlock);
}

// A client may say it as often as it likes.
TEST_F(RecorderWorldTest, ALeaseThatIsSaidToBeMappedAgainIsNotWrittenAgain) {
  SimClient* client = Parked("a");
  const quota::LeaseId lease = Lease(client, 4);
  v1::ClientMessage mapped;
  mapped.mutable_mapped()->set_lease_id(lease.value);
  const auto written = [&] {
    size_t leases = 0;
    world.Do("mapped", [&](Turn& turn) {
      world.machine().HandleMessage(client->session, mapped, turn);
      leases = state().record_news->leases.size();
    });
    return leases;
  };
  EXPECT_EQ(written(), 1u);
  EXPECT_EQ(state().LeaseAt(lease).life->state, v1::LeaseInfo::MAPPED);
  EXPECT_EQ(written(), 0u);
}

TEST_F(RecorderWorldTest, WhatATurnChangedIsWrittenAsItIsAtItsEnd) {
  SimClient* client = Parked("a");
  const quota::LeaseId lease = Lease(client, 4);
  State copy(state());
  Recorder recorder(copy);
  EXPECT_TRUE(Written(copy).empty()) << "each turn has written its own";
  recorder.Touch(lease);
  recorder.Touch(quota::LeaseId{lease.value + 1});
  recorder.TouchSession(client->session);
  recorder.TouchPool(kPool);
  recorder.TouchPool(kPool);
  const RecordChanges changes = Written(copy);
  ASSERT_THAT(changes.leases, SizeIs(1));
  EXPECT_EQ(changes.leases[0].id, lease.value);
  EXPECT_THAT(changes.ended_leases, ElementsAre(lease.value + 1));
  ASSERT_THAT(changes.sessions, SizeIs(1));
  EXPECT_EQ(changes.sessions[0].id, client->session);
  ASSERT_THAT(changes.pools, SizeIs(1));
  EXPECT_EQ(changes.pools[0].device, "sim-1");
}

}  // namespace
}  // namespace gmb::broker
