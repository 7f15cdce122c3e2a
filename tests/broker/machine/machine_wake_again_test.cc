// Scopes that wait for longer than one Restore, so that their client asks again
// and again (docs/protocol.md, "Restore").
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class MachineWakeAgainTest : public MachineFixture {
 protected:
  void SetUp() override {
    SetTenant("chat");
    SetTenant("batch");
    chat = Parked("chat");
    batch = Connect("batch");
  }
  // Of `chat`, and away.
  quota::LeaseId Evicted(uint64_t granules) {
    const quota::LeaseId lease = Lease(chat, granules);
    Reclaim("chat");
    Work();
    EXPECT_EQ(Where(lease), "evicted");
    return lease;
  }
  SimClient* chat = nullptr;
  SimClient* batch = nullptr;
};

// Small requests that come without end, each for 20 s. It is first in the queue,
// and needs a claim that holds for longer than one of its Restores waits.
TEST_F(MachineWakeAgainTest, ASeriesOfRestoresIsServedAsOneThatWaitsForLong) {
  Evicted(40);
  std::deque<std::pair<quota::Instant, quota::LeaseId>> held;
  for (int i = 0; i < 64; ++i) {
    held.emplace_back(world.now() + seconds(20), Lease(batch, 1));
    RunFor(milliseconds(312));
  }
  std::deque<uint64_t> waiting;
  const auto step = [&] {
    while (waiting.size() < 8)
      waiting.push_back(Ask(batch, 1, {.wait = seconds(1000)}));
    for (; held.front().first <= world.now(); held.pop_front())
      Release(batch, held.front().second);
    RunFor(milliseconds(100));
    for (; !waiting.empty() && Outcome(batch, waiting.front()) == "granted";
         waiting.pop_front()) {
      held.emplace_back(
          world.now() + seconds(20),
          quota::LeaseId{AnswerTo(batch, waiting.front()).grant().lease_id()});
    }
  };
  const quota::Instant began = world.now();
  uint64_t restore = Restore(chat, seconds(10));
  while (world.now() < began + seconds(60) &&
         Outcome(chat, restore) != "restored") {
    if (Outcome(chat, restore) == "POOL_EXHAUSTED")
      restore = Restore(chat, seconds(10));
    step();
  }
  EXPECT_EQ(Outcome(chat, restore), "restored");
}

TEST_F(MachineWakeAgainTest, WhoDoesNotAskAgainLosesItsPlaceWithinASecond) {
  const quota::LeaseId lease = Evicted(40);
  const quota::LeaseId blocking = Lease(batch, 40);
  const uint64_t id = Restore(chat, seconds(3));
  RunFor(seconds(3));
  EXPECT_EQ(Outcome(chat, id), "POOL_EXHAUSTED");
  EXPECT_NE(AnswerTo(chat, id).error().detail().deficit_bytes(), 0u);
  EXPECT_EQ(Waiting(), 1u) << "it may be asked for again";
  RunFor(milliseconds(990));
  EXPECT_EQ(Waiting(), 1u);
  EXPECT_TRUE(Events("restore_failed").empty());
  RunFor(milliseconds(20));
  EXPECT_EQ(Waiting(), 0u);
  EXPECT_EQ(Events("restore_failed").size(), 1u);
  Release(batch, blocking);
  Work();
  EXPECT_EQ(Where(lease), "evicted");
}

TEST_F(MachineWakeAgainTest, WhoAsksAgainWaitsOnInItsPlace) {
  Evicted(40);
  const quota::LeaseId blocking = Lease(batch, 40);
  Restore(chat, seconds(3));
  RunFor(milliseconds(3500));
  SetTenant("late");
  Ask(Connect("late"), 40, {.wait = seconds(60)});  // it stays
  const uint64_t again = Restore(chat, seconds(3));
  RunFor(milliseconds(2900));
  EXPECT_EQ(Outcome(chat, again), "nothing");
  Release(batch, blocking);
  Work();
  EXPECT_EQ(Outcome(chat, again), "restored");
}

// While a request that names a shared lease waits nobody else can ask for it.
TEST_F(MachineWakeAgainTest, OneThatAsksAgainKeepsNoSharedLeaseFromOthers) {
  const quota::LeaseId shared = Lease(chat, 8, {.share_as = "w"});
  SimClient* other = Parked("chat");
  ASSERT_EQ(Outcome(other, Attach(other, "w")), "attached");
  Evicted(40);
  ASSERT_EQ(Where(shared), "evicted");
  Lease(batch, 50);  // 14 are left
  Restore(chat, seconds(3));
  const uint64_t of_other = Restore(other, seconds(60));
  SimClient* late = Parked("chat");
  const uint64_t attach = Attach(late, "w", seconds(60));
  EXPECT_EQ(Outcome(late, attach), "waits");
  for (int i = 0; i < 5; ++i) {
    RunFor(seconds(2));
    Restore(chat, seconds(3));  // before the last one's time is over
  }
  EXPECT_EQ(Outcome(other, of_other), "restored");
  EXPECT_EQ(Outcome(late, attach), "attached");
  EXPECT_EQ(Where(shared), "mapped");
}

// The engine's request is over after two minutes, and the next one begins.
TEST_F(MachineWakeAgainTest, WhoWaitsForLongerThanASeriesWaitsOn) {
  SetTenant("chat", {.limit = 50});
  SimClient* other = Active("chat");
  Evicted(20);
  const quota::LeaseId blocking = Lease(other, 30);
  SetTenant("chat", {.limit = 30});
  Restore(chat, seconds(10));
  RunFor(seconds(5));
  const uint64_t long_one = Restore(chat, minutes(10));
  RunFor(seconds(130));
  EXPECT_EQ(Outcome(chat, long_one), "nothing");
  Release(other, blocking);
  Work();
  EXPECT_EQ(Outcome(chat, long_one), "restored");
}

// The engine's request is that of the one whose time is over first.
TEST_F(MachineWakeAgainTest, WhoAttachesForLongerThanAnotherWaitsOn) {
  SetTenant("chat", {.limit = 50});
  Lease(chat, 20, {.share_as = "w"});
  Reclaim("chat");
  Work();
  SimClient* other = Active("chat");
  const quota::LeaseId blocking = Lease(other, 30);
  SetTenant("chat", {.limit = 30});
  SimClient* late = Parked("chat");
  const uint64_t first = Attach(late, "w", seconds(1));
  const uint64_t second = Attach(late, "w", seconds(60));
  RunFor(seconds(2));
  EXPECT_EQ(Outcome(late, first), "TENANT_LIMIT");
  EXPECT_EQ(Outcome(late, second), "waits");
  Release(other, blocking);
  Work();
  EXPECT_EQ(Outcome(late, second), "attached");
}

// None of them failed.
TEST_F(MachineWakeAgainTest, SeriesThatEndAreNoAttemptsThatFailed) {
  Evicted(40);
  const quota::LeaseId blocking = Lease(batch, 40);
  uint64_t restore = 0;
  for (int i = 0; i < 50; ++i) {
    restore = Restore(chat, seconds(11));
    RunFor(seconds(10));
  }
  EXPECT_EQ(SessionOf(chat).waking->restore_attempts, 1u);
  Release(batch, blocking);
  Work();
  EXPECT_EQ(Outcome(chat, restore), "restored");
}

TEST_F(MachineWakeAgainTest, ItIsToldOfAllThatWasAskedFor) {
  SimClient* one = Parked("chat", "ranks");
  SimClient* two = Parked("chat", "ranks");
  Lease(one, 8, {.share_as = "w"});
  Lease(two, 32);
  Reclaim("chat");
  Work();
  Lease(batch, 40);
  const uint64_t id = Restore(one, seconds(2));
  Restore(two, seconds(10));
  RunFor(seconds(3));
  ASSERT_EQ(Outcome(one, id), "POOL_EXHAUSTED");
  const std::string message = AnswerTo(one, id).error().message();
  EXPECT_NE(message.find(absl::StrCat(": bytes=", 40 * kGranule, " ")),
            std::string::npos)
      << message;
}

// Each of two ranks asks before the other one's time is over. The wake is within
// its guarantee: memory that is too young is taken by the end of the first one.
TEST_F(MachineWakeAgainTest, RestoresThatOverlapDoNotPutOffItsGuarantee) {
  SetTenant("chat", {.guarantee = 40});
  SetTenant("young", {.min_residency = minutes(10)});
  SimClient* one = Parked("chat", "ranks");
  SimClient* two = Parked("chat", "ranks");
  Lease(one, 20);
  Lease(two, 20);
  Reclaim("chat");
  Work();
  const quota::LeaseId young = Lease(Parked("young"), 60);
  Restore(one, seconds(10));
  RunFor(seconds(5));
  const uint64_t second = Restore(two, seconds(10));
  RunFor(milliseconds(4500));
  EXPECT_EQ(Where(young), "mapped") << "it has its time while it can";
  RunFor(milliseconds(700));
  EXPECT_EQ(Where(young), "evicted");
  EXPECT_EQ(Outcome(two, second), "restored");
}

}  // namespace
}  // namespace gmb::broker
