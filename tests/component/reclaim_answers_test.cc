// Sessions that are asked for memory and answer wrongly, late or never: what
// they lose is their own, and others get what is really free.
#include <atomic>
#include <chrono>
#include <thread>

#include "gmb/error.h"
#include "tests/component/reclaim_liars.h"

namespace gmb::component {
namespace {

using ReclaimAnswersTest = ReclaimLiarsTest;

v1::ClientMessage RestoreMessage(int64_t seconds = 20) {
  v1::ClientMessage message;
  message.mutable_restore()->mutable_wait()->set_seconds(seconds);
  return message;
}

TEST_F(ReclaimAnswersTest, OneThatSaysParkedAndComputesOnHarmsItsOwnBytes) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  std::atomic<bool> stop = false;
  std::thread computing([&, words = liar->Words(lease)] {
    for (uint64_t i = 0; !stop; ++i) words[i % 1000] = i;
  });
  auto waiting = Wait();
  const v1::Evict evict = liar->AwaitEvict();
  stop = true;
  computing.join();
  liar->Unmap(evict);
  const absl::Status served = waiting.get();
  EXPECT_TRUE(served.ok()) << served;
}

TEST_F(ReclaimAnswersTest, WhatIsKeptMappedIsUnreturnedAndNobodyElses) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  auto waiting = Wait(absl::Seconds(4));
  const v1::Evict evict = liar->AwaitEvict();
  liar->Words(lease)[0] = 42;
  liar->SayUnmapped(lease, evict.move());
  EXPECT_TRUE(absl::IsResourceExhausted(waiting.get()));
  EXPECT_TRUE(Await([&] { return Pool().unreturned_bytes() == kLiarBytes; }));
  EXPECT_EQ(liar->Words(lease)[0], 42U);
  const absl::Status left = Take(kLeftBytes, kLong);
  EXPECT_TRUE(left.ok()) << left;
  EXPECT_EQ(liar->Words(lease)[0], 42U);
  // It is charged for it: its limit is used up twice over.
  v1::SetTenantRequest limit;
  limit.set_name("liar");
  limit.mutable_limit()->set_bytes(kLiarBytes);
  ASSERT_TRUE(SetTenant(limit).ok());
  v1::ClientMessage more;
  more.mutable_acquire()->set_bytes(2 * kMiB);
  EXPECT_EQ(liar->Ask(more).error().detail().reason(), v1::TENANT_LIMIT);
  liar->ReleaseMemory(lease);
  const absl::Status served = Take(kWaitingBytes, kLong);
  EXPECT_TRUE(served.ok()) << served;
}

TEST_F(ReclaimAnswersTest, AnswersThatWereNotAskedForChangeNothing) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  const uint64_t other = liar->Acquire(2 * kMiB, v1::RESIDENT);
  auto waiting = Wait();
  const v1::Evict evict = liar->AwaitEvict();
  ASSERT_EQ(evict.lease_id(), lease);
  const uint64_t bystanders = lease - 1;
  for (const uint64_t id : {other, bystanders, uint64_t{0}, ~uint64_t{0}}) {
    liar->SayUnmapped(id, evict.move());
    liar->SayMapped(id, evict.move());
  }
  for (const uint64_t move :
       {evict.move() + 1, evict.move() - 1, uint64_t{0}, ~uint64_t{0}}) {
    liar->SayUnmapped(lease, move);
    liar->SayMapped(lease, move);
  }
  liar->SayMapped(lease, evict.move());
  v1::ClientMessage ask;
  ask.mutable_get_quota();
  EXPECT_TRUE(liar->Ask(ask).has_quota_report());  // all of it was read
  EXPECT_EQ(LeaseOf(lease)->state(), v1::LeaseInfo::EVICTING);
  EXPECT_EQ(LeaseOf(other)->state(), v1::LeaseInfo::MAPPED);
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);
  liar->Unmap(evict);
  const absl::Status served = waiting.get();
  EXPECT_TRUE(served.ok()) << served;
  liar->SayUnmapped(lease, evict.move());  // once more
  // Mapped, of what is not being restored.
  liar->SayMapped(lease, evict.move());
  liar->SayMapped(lease, evict.move() + 1);
  EXPECT_TRUE(liar->Ask(ask).has_quota_report());
  EXPECT_EQ(LeaseOf(lease)->state(), v1::LeaseInfo::EVICTED);
}

TEST_F(ReclaimAnswersTest, AnAnswerAfterItsDeadlineStillServes) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  auto waiting = Wait();
  const v1::Evict evict = liar->AwaitEvict();
  EXPECT_TRUE(watch().AwaitOut("client_overdue")) << watch().Out();
  EXPECT_TRUE(LeaseOf(lease)->hard());
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);
  liar->Unmap(evict);
  const absl::Status served = waiting.get();
  EXPECT_TRUE(served.ok()) << served;
  const uint64_t id = liar->Send(RestoreMessage());
  const v1::Map map = liar->AwaitMap();
  liar->SayMapped(map.lease_id(), map.move());
  EXPECT_TRUE(liar->AwaitAnswer(id).has_restored());
  EXPECT_FALSE(LeaseOf(lease)->hard());
}

TEST_F(ReclaimAnswersTest, OneThatNeverAnswersKeepsItsMemoryAndItCountsAsHard) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  const absl::Time start = absl::Now();
  auto waiting = Wait(absl::Seconds(5));
  (void)liar->AwaitEvict();
  EXPECT_TRUE(absl::IsResourceExhausted(waiting.get()));
  EXPECT_GT(absl::Now() - start, absl::Seconds(4.9));
  EXPECT_TRUE(LeaseOf(lease)->hard());
  const absl::Status left = Take(kLeftBytes, kLong);
  EXPECT_TRUE(left.ok()) << left;
  // Nor can it have others' guarantees: they are promised what is left.
  v1::SetTenantRequest request;
  request.set_name("waiting");
  request.mutable_guarantee()->set_bytes(kWaitingBytes);
  const auto changed = SetTenant(request);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->changes(0).state(), v1::Change::PENDING);
}

TEST_F(ReclaimAnswersTest, AnEvictionThatIsRefusedIsNoEviction) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  liar->Words(lease)[7] = 7;
  auto waiting = Wait(absl::Seconds(6));
  const v1::Evict evict = liar->AwaitEvict();
  v1::ClientMessage refusal;
  refusal.mutable_unmapped()->set_lease_id(lease);
  refusal.mutable_unmapped()->set_move(evict.move());
  refusal.mutable_unmapped()->mutable_error()->set_code(13);
  (void)liar->Send(refusal);
  EXPECT_TRUE(absl::IsResourceExhausted(waiting.get()));
  EXPECT_TRUE(liar->Ask(RestoreMessage()).has_restored());
  EXPECT_EQ(LeaseOf(lease)->state(), v1::LeaseInfo::MAPPED);
  EXPECT_EQ(liar->Words(lease)[7], 7U);
}

TEST_F(ReclaimAnswersTest, AMapThatFailsLeavesTheContentsWhereTheyAre) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  liar->Words(lease)[7] = 7;
  auto waiting = Wait();
  liar->Unmap(liar->AwaitEvict());
  ASSERT_TRUE(waiting.get().ok());
  const uint64_t failed = liar->Send(RestoreMessage());
  const v1::Map map = liar->AwaitMap();
  v1::ClientMessage refusal;
  refusal.mutable_mapped()->set_lease_id(lease);
  refusal.mutable_mapped()->set_move(map.move());
  refusal.mutable_mapped()->mutable_error()->set_code(13);
  liar->ReleaseMemory(lease);
  (void)liar->Send(refusal);
  EXPECT_TRUE(liar->AwaitAnswer(failed).has_error());
  ASSERT_TRUE(AwaitState(lease, v1::LeaseInfo::EVICTED));
  const uint64_t again = liar->Send(RestoreMessage());
  const v1::Map second = liar->AwaitMap();
  liar->SayMapped(lease, second.move());
  EXPECT_TRUE(liar->AwaitAnswer(again).has_restored());
  EXPECT_EQ(liar->Words(lease)[7], 7U);
}

TEST_F(ReclaimAnswersTest, ABrokenStreamIsToldAgainWhatIsNotAnswered) {
  uint64_t lease = 0;
  const auto liar = OpenParked(&lease);
  liar->Words(lease)[9] = 9;
  auto waiting = Wait();
  const v1::Evict evict = liar->AwaitEvict();
  liar->BreakStream();
  const v1::Evict repeated = liar->AwaitEvict();
  EXPECT_EQ(repeated.move(), evict.move());
  EXPECT_EQ(repeated.lease_id(), evict.lease_id());
  liar->Unmap(repeated);
  ASSERT_TRUE(waiting.get().ok());
  const uint64_t id = liar->Send(RestoreMessage());
  const v1::Map map = liar->AwaitMap();
  liar->BreakStream();
  const v1::Map map_again = liar->AwaitNotice(v1::BrokerMessage::kMap).map();
  EXPECT_EQ(map_again.move(), map.move());
  liar->SayMapped(lease, map.move());
  EXPECT_TRUE(liar->AwaitAnswer(id).has_restored());
  EXPECT_EQ(liar->Words(lease)[9], 9U);
}

TEST_F(ReclaimAnswersTest, ASessionThatEndsInTheMiddleLeavesNothing) {
  uint64_t lease = 0;
  for (const bool restoring : {false, true}) {
    auto liar = OpenParked(&lease);
    auto waiting = Wait();
    const v1::Evict evict = liar->AwaitEvict();
    if (restoring) {
      liar->Unmap(evict);
      ASSERT_TRUE(waiting.get().ok());
      (void)liar->Send(RestoreMessage());
      (void)liar->AwaitMap();
    }
    liar.reset();
    if (!restoring) {
      const absl::Status served = waiting.get();
      EXPECT_TRUE(served.ok()) << served;
    }
    EXPECT_TRUE(Await([&] { return !LeaseOf(lease).has_value(); }));
  }
}

}  // namespace
}  // namespace gmb::component
