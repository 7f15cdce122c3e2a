// The leases that keep the gates of sessions closed: those that are away,
// that move, or that are there and not mapped.
#include "broker/machine/away.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "broker/machine/lease_users.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class AwayTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    SetTenant("b");
    idle = Parked("a");
  }
  [[nodiscard]] std::vector<Session*> With(
      const std::vector<const SimClient*>& clients) const {
    std::vector<Session*> sessions;
    for (const SimClient* client : clients)
      sessions.push_back(&state().SessionAt(client->session));
    return sessions;
  }
  [[nodiscard]] Away Of(const std::vector<const SimClient*>& clients) const {
    return AwayOf(state(), With(clients));
  }
  [[nodiscard]] bool Moves(quota::LeaseId lease,
                           const std::vector<const SimClient*>& clients) const {
    return MovesFor(state().LeaseAt(lease), With(clients));
  }
  SimClient* idle = nullptr;
};

TEST_F(AwayTest, NothingIsAwayOfWhatIsThereAndMapped) {
  Lease(idle, 2);
  Lease(idle, 2);
  const Away away = Of({idle});
  EXPECT_FALSE(away.moving);
  EXPECT_FALSE(away.asked_back);
  EXPECT_THAT(away.evicted, IsEmpty());
  EXPECT_THAT(away.unready, IsEmpty());
  EXPECT_EQ(away.looks, 2u);
}

TEST_F(AwayTest, ALeaseMovesUntilItIsOutOrBackAndMapped) {
  const quota::LeaseId lease = Lease(idle, 4);
  EXPECT_FALSE(Moves(lease, {idle}));
  Reclaim("a");
  EXPECT_TRUE(Of({idle}).moving);
  EXPECT_TRUE(Moves(lease, {idle}));
  Work();
  EXPECT_FALSE(Of({idle}).moving);
  EXPECT_FALSE(Moves(lease, {idle}));
  EXPECT_THAT(Of({idle}).evicted, ElementsAre(lease));
  EXPECT_THAT(Of({idle}).unready, IsEmpty()) << "it has nothing to be mapped";
  Restore(idle);
  EXPECT_TRUE(Of({idle}).moving);
  EXPECT_TRUE(Moves(lease, {idle}));
  EXPECT_THAT(Of({idle}).evicted, IsEmpty());
  Work();
  EXPECT_FALSE(Of({idle}).moving);
}

TEST_F(AwayTest, OthersLeasesAreNotItsOwn) {
  SimClient* other = Parked("a");
  const quota::LeaseId lease = Lease(other, 4);
  Reclaim("a");
  EXPECT_FALSE(Of({idle}).moving);
  EXPECT_FALSE(Moves(lease, {idle}));
  EXPECT_TRUE(Moves(lease, {idle, other})) << "members are searched in order";
  EXPECT_TRUE(Of({idle, other}).moving);
  SimClient* last = Parked("a");
  EXPECT_TRUE(Moves(lease, {idle, other, last}));
  EXPECT_FALSE(Moves(lease, {idle, last}));
}

// Evicted as long as nobody asks for it; then who needs it too waits with him.
TEST_F(AwayTest, WhatAnotherAsksBackIsNotAskedForAgain) {
  const quota::LeaseId lease = Lease(idle, 8, {.share_as = "w"});
  SimClient* reader = Parked("a");
  ASSERT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  Reclaim("a");
  Work();
  Lease(Connect("b"), 60);
  EXPECT_THAT(Of({reader}).evicted, ElementsAre(lease));
  EXPECT_FALSE(Of({reader}).asked_back);
  Restore(idle, seconds(60));
  EXPECT_THAT(Of({reader}).evicted, IsEmpty());
  EXPECT_TRUE(Of({reader}).asked_back);
}

// Back for the other: it lies there, and this one has not mapped it.
TEST_F(AwayTest, WhatIsThereAndNotMappedIsUnready) {
  const quota::LeaseId lease = Lease(idle, 8, {.share_as = "w"});
  SimClient* reader = Parked("a");
  ASSERT_EQ(Outcome(reader, Attach(reader, "w")), "attached");
  Reclaim("a");
  Work();
  Restore(idle);
  Work();
  ASSERT_EQ(Where(lease), "mapped");
  EXPECT_THAT(Of({idle}).unready, IsEmpty());
  const Away away = Of({idle, reader});
  ASSERT_THAT(away.unready, SizeIs(1));
  EXPECT_EQ(away.unready[0].first->id, lease);
  EXPECT_EQ(away.unready[0].second->id, reader->session);
  EXPECT_EQ(away.looks, 2u);
  EXPECT_FALSE(away.moving);
  // It is asked to map it: that is a move of its own, and not of the other's.
  Restore(reader);
  EXPECT_TRUE(Moves(lease, {reader}));
  EXPECT_FALSE(Moves(lease, {idle}));
  EXPECT_TRUE(Of({reader}).moving);
  EXPECT_FALSE(Of({idle}).moving);
}

}  // namespace
}  // namespace gmb::broker
