// Restores that fail half-way (docs/eviction.md, "Restoring"): the contents are
// true in the host pool alone, however often it fails, until slabs are filled.
#include <chrono>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class MachineTornTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("a");
    idle = Parked("a");
  }
  quota::LeaseId Evicted(uint64_t granules, const Wish& wish = {}) {
    const quota::LeaseId lease = Lease(idle, granules, wish);
    Write(idle, lease, 300);
    written = Read(idle, lease);
    Reclaim("a");
    Work();
    EXPECT_EQ(Where(lease), "evicted");
    return lease;
  }
  // It was filled in part, and the client cannot unmap it: it stays there.
  quota::LeaseId Torn(const Wish& wish = {}) {
    const quota::LeaseId lease = Evicted(7, wish);
    Restore(idle);
    RunDevice();
    Follow(idle);
    RunCopies(/*fail=*/true);
    RefuseMoves(idle);
    EXPECT_EQ(Where(lease), "mapped");
    EXPECT_TRUE(state().LeaseAt(lease).move->torn);
    EXPECT_TRUE(IsClosed(idle));
    return lease;
  }
  SimClient* idle = nullptr;
  std::vector<uint64_t> written;
};

TEST_F(MachineTornTest, OneThatCouldNotLeaveAgainIsFilledWhereItLies) {
  const quota::LeaseId lease = Torn();
  const size_t maps = Told(idle, v1::BrokerMessage::kMap);
  const uint64_t out = world.copies_out;
  const uint64_t id = Restore(idle);
  EXPECT_EQ(Where(lease), "restoring");
  EXPECT_EQ(Outcome(idle, id), "nothing") << "it is being filled";
  RunCopies();
  EXPECT_EQ(Outcome(idle, id), "restored");
  EXPECT_FALSE(state().LeaseAt(lease).move->torn);
  EXPECT_EQ(Read(idle, lease), written);
  EXPECT_EQ(world.copies_out, out);
  EXPECT_EQ(Told(idle, v1::BrokerMessage::kMap), maps) << "it has it mapped";
}

TEST_F(MachineTornTest, ItsSlabsAreNeverCopiedOverTheContents) {
  const quota::LeaseId lease = Torn();
  const uint64_t out = world.copies_out;
  RunFor(seconds(11));  // until then it is left alone
  Reclaim("a");
  Work();
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_EQ(world.copies_out, out);
  EXPECT_EQ(Events("evict_started").back().message(), "nothing to copy");
  const uint64_t id = Restore(idle);
  Work();
  EXPECT_EQ(Outcome(idle, id), "restored");
  EXPECT_EQ(Read(idle, lease), written);
}

TEST_F(MachineTornTest, FillingItMayFailAgainAndIsAnAnswerEachTime) {
  const quota::LeaseId lease = Torn();
  for (int i = 0; i < 2; ++i) {
    const uint64_t id = Restore(idle);
    RunCopies(/*fail=*/true);
    EXPECT_EQ(Outcome(idle, id), "DEVICE_ERROR");
    RefuseMoves(idle);
    EXPECT_EQ(Where(lease), "mapped");
  }
  const uint64_t last = Restore(idle);
  RunCopies();
  EXPECT_EQ(Outcome(idle, last), "restored");
  EXPECT_EQ(Read(idle, lease), written);
}

TEST_F(MachineTornTest, WhatMayBeLostIsNeverTorn) {
  const quota::LeaseId lease = Evicted(7, {.contents = v1::DISCARD});
  const uint64_t id = Restore(idle);
  RunDevice();
  RefuseMoves(idle);
  EXPECT_EQ(Outcome(idle, id), "DEVICE_ERROR");
  EXPECT_THAT(AnswerTo(idle, id).error().message(), HasSubstr("it will not"));
  Work();
  EXPECT_EQ(Where(lease), "evicted");
  EXPECT_FALSE(state().LeaseAt(lease).move->torn);
  const uint64_t again = Restore(idle);
  Work();
  EXPECT_EQ(Outcome(idle, again), "restored");
}

// Its slabs hold nothing newer than its contents, whatever its gate says.
TEST_F(MachineTornTest, SealingItKeepsItsContents) {
  const quota::LeaseId lease = Torn();
  const ipc::GateWord closed = GateOf(idle);
  idle->cells->word.store(ipc::GateWord(ipc::GateState::kOpen, 1, 9).bits());
  Seal(idle, lease);
  EXPECT_TRUE(state().LeaseAt(lease).move->torn);
  idle->cells->word.store(closed.bits());
  const uint64_t id = Restore(idle);
  Work();
  EXPECT_EQ(Outcome(idle, id), "restored");
  EXPECT_EQ(Read(idle, lease), written);
}

// Nobody is let in to a shared lease before it is whole.
TEST_F(MachineTornTest, WhoAttachesToATornOneHasItFilledFirst) {
  const quota::LeaseId lease = Torn({.share_as = "w"});
  SimClient* reader = Parked("a");
  const uint64_t id = Attach(reader, "w", seconds(10));
  EXPECT_EQ(Outcome(reader, id), "waits");
  EXPECT_EQ(Where(lease), "restoring");
  RunCopies();
  EXPECT_EQ(Outcome(reader, id), "attached");
  EXPECT_EQ(Read(reader, lease), written);
  EXPECT_FALSE(IsClosed(idle)) << "all that it has is back";
}

TEST_F(MachineTornTest, WhileItIsBeingUnmappedNobodyFillsIt) {
  const quota::LeaseId lease = Evicted(7, {.share_as = "w"});
  Restore(idle);
  RunDevice();
  Follow(idle);
  RunCopies(/*fail=*/true);
  ASSERT_EQ(Where(lease), "evicting");
  SimClient* reader = Parked("a");
  const uint64_t id = Attach(reader, "w", seconds(10));
  EXPECT_EQ(Outcome(reader, id), "waits");
  EXPECT_EQ(Where(lease), "evicting");
  RunDevice();
  EXPECT_EQ(Outcome(reader, id), "waits");
  Work();
  EXPECT_EQ(Outcome(reader, id), "attached");
  EXPECT_EQ(Read(reader, lease), written);
}

}  // namespace
}  // namespace gmb::broker
