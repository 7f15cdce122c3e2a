#include "broker/hostpool/host_books.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/hostpool/slab_rooms.h"

namespace gmb::broker {
namespace {

using Outcome = HostBooks::Outcome;
using device::HostExtent;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsNull;
using testing::Pointee;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGranule = device::kHostPoolGranularityBytes;
constexpr quota::TenantId kA{1};
constexpr quota::TenantId kB{2};
constexpr quota::LeaseId kFirst{1};
constexpr quota::LeaseId kSecond{2};
constexpr quota::LeaseId kThird{3};

TEST(HostBooks, WithoutAHostPoolEveryReservationIsRefusedAsOff) {
  HostBooks books(0);
  const HostBooks::Answer answer = books.Reserve(kA, kFirst, 4 * kMiB);
  EXPECT_EQ(answer.outcome, Outcome::kOff);
  EXPECT_EQ(answer.deficit_bytes, 4 * kMiB);
  EXPECT_FALSE(books.HasRoom(kFirst));
}

TEST(HostBooks, WhatIsReservedNeverExceedsThePool) {
  HostBooks books(10 * kMiB);
  EXPECT_EQ(books.Reserve(kA, kFirst, 6 * kMiB).outcome, Outcome::kReserved);
  const HostBooks::Answer refused = books.Reserve(kB, kSecond, 6 * kMiB);
  EXPECT_EQ(refused.outcome, Outcome::kPoolFull);
  EXPECT_EQ(refused.deficit_bytes, 2 * kMiB);
  EXPECT_EQ(books.total().reserved_bytes, 6 * kMiB);
  books.Release(kFirst);
  EXPECT_EQ(books.Reserve(kB, kSecond, 10 * kMiB).outcome, Outcome::kReserved);
}

TEST(HostBooks, ATenantReservesNoMoreThanItsLimit) {
  HostBooks books(100 * kMiB);
  books.SetLimit(kA, 10 * kMiB);
  EXPECT_EQ(books.Reserve(kA, kFirst, 8 * kMiB).outcome, Outcome::kReserved);
  const HostBooks::Answer refused = books.Reserve(kA, kSecond, 6 * kMiB);
  EXPECT_EQ(refused.outcome, Outcome::kTenantLimit);
  EXPECT_EQ(refused.deficit_bytes, 4 * kMiB);
  EXPECT_EQ(books.Reserve(kB, kSecond, 50 * kMiB).outcome, Outcome::kReserved);
}

TEST(HostBooks, ALoweredLimitHoldsForNewReservationsAndTakesNothing) {
  HostBooks books(100 * kMiB);
  EXPECT_EQ(books.Reserve(kA, kFirst, 8 * kMiB).outcome, Outcome::kReserved);
  books.SetLimit(kA, 2 * kMiB);
  EXPECT_EQ(books.Reserve(kA, kSecond, 2 * kMiB).deficit_bytes, 2 * kMiB);
  EXPECT_FALSE(books.HasRoomFor(kA, 2 * kMiB));
  EXPECT_TRUE(books.HasRoomFor(kB, 92 * kMiB));
  EXPECT_FALSE(books.HasRoomFor(kB, 93 * kMiB));
  EXPECT_EQ(books.Place(kFirst).size(), 1u);
  EXPECT_EQ(books.of(kA).reserved_bytes, 8 * kMiB);
}

TEST(HostBooks, ATenantThatIsForgottenKeepsTheRoomOfItsLeases) {
  HostBooks books(100 * kMiB);
  books.SetLimit(kA, 50 * kMiB);
  EXPECT_EQ(books.Reserve(kA, kFirst, 8 * kMiB).outcome, Outcome::kReserved);
  books.ForgetTenant(kA);
  EXPECT_EQ(books.of(kA).reserved_bytes, 8 * kMiB);
  books.Release(kFirst);
  books.ForgetTenant(kA);
  EXPECT_EQ(books.limit_bytes(kA), 100 * kMiB);
  EXPECT_EQ(books.total().reserved_bytes, 0u);
}

TEST(HostBooks, ReservingTwiceReservesOnce) {
  HostBooks books(10 * kMiB);
  EXPECT_EQ(books.Reserve(kA, kFirst, 6 * kMiB).outcome, Outcome::kReserved);
  EXPECT_EQ(books.Reserve(kA, kFirst, 6 * kMiB).outcome, Outcome::kReserved);
  EXPECT_EQ(books.total().reserved_bytes, 6 * kMiB);
}

TEST(HostBooks, ACopyIsTrueFromItsCompletionUntilItIsSpoiltOrReleased) {
  HostBooks books(10 * kMiB);
  ASSERT_EQ(books.Reserve(kA, kFirst, 4 * kMiB).outcome, Outcome::kReserved);
  books.MarkTrue(kFirst);  // nowhere yet
  EXPECT_THAT(books.TrueCopy(kFirst), IsNull());
  EXPECT_THAT(books.Place(kFirst), ElementsAre(HostExtent{0, 4 * kMiB}));
  EXPECT_THAT(books.TrueCopy(kFirst), IsNull());
  books.MarkTrue(kFirst);
  EXPECT_THAT(books.TrueCopy(kFirst),
              Pointee(ElementsAre(HostExtent{0, 4 * kMiB})));
  EXPECT_EQ(books.of(kA).true_bytes, 4 * kMiB);
  EXPECT_THAT(books.Place(kFirst), IsEmpty()) << "it would be overwritten";
  books.MarkUntrue(kFirst);
  EXPECT_THAT(books.TrueCopy(kFirst), IsNull());
  EXPECT_EQ(books.of(kA).true_bytes, 0u);
  EXPECT_THAT(books.Place(kFirst), ElementsAre(HostExtent{0, 4 * kMiB}));
  books.MarkTrue(kFirst);
  books.Release(kFirst);
  EXPECT_THAT(books.TrueCopy(kFirst), IsNull());
  EXPECT_EQ(books.total().placed_bytes, 0u);
  EXPECT_FALSE(books.HasRoom(kFirst));
}

TEST(HostBooks, BytesThatAnotherTenantLeftAreNobodysCopy) {
  HostBooks books(4 * kMiB);
  ASSERT_EQ(books.Reserve(kA, kFirst, 4 * kMiB).outcome, Outcome::kReserved);
  (void)books.Place(kFirst);
  books.MarkTrue(kFirst);
  books.Release(kFirst);
  ASSERT_EQ(books.Reserve(kB, kSecond, 4 * kMiB).outcome, Outcome::kReserved);
  EXPECT_THAT(books.Place(kSecond), ElementsAre(HostExtent{0, 4 * kMiB}));
  EXPECT_THAT(books.TrueCopy(kSecond), IsNull());
  EXPECT_THAT(books.TrueCopy(kFirst), IsNull());
}

TEST(HostBooks, ReservedRoomIsFoundHoweverScatteredThePoolIs) {
  HostBooks books(20 * kGranule);
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_EQ(books.Reserve(kA, {100 + i}, kGranule).outcome,
              Outcome::kReserved);
    (void)books.Place({100 + i});
  }
  for (uint64_t i = 0; i < 20; i += 2) books.Release({100 + i});
  ASSERT_EQ(books.Reserve(kB, kThird, 10 * kGranule).outcome,
            Outcome::kReserved);
  const std::vector<HostExtent> place = books.Place(kThird);
  ASSERT_EQ(place.size(), 10u);
  for (const HostExtent& extent : place) EXPECT_EQ(extent.bytes, kGranule);
}

TEST(HostBooks, FreeNeighboursAreOneExtentAgain) {
  ExtentSet set(16 * kGranule);
  const std::vector<HostExtent> a = set.Take(4 * kGranule);
  const std::vector<HostExtent> b = set.Take(4 * kGranule);
  const std::vector<HostExtent> c = set.Take(4 * kGranule);
  set.Give(a);
  set.Give(c);
  EXPECT_EQ(set.num_extents(), 2u);
  set.Give(b);
  EXPECT_EQ(set.num_extents(), 1u);
  EXPECT_THAT(set.Take(16 * kGranule),
              ElementsAre(HostExtent{0, 16 * kGranule}));
}

TEST(HostBooks, TheSmallestHoleThatFitsIsTaken) {
  ExtentSet set(16 * kGranule);
  const std::vector<HostExtent> a = set.Take(6 * kGranule);
  const std::vector<HostExtent> between = set.Take(kGranule);
  const std::vector<HostExtent> b = set.Take(3 * kGranule);
  (void)set.Take(kGranule);
  set.Give(a);
  set.Give(b);
  EXPECT_THAT(set.Take(2 * kGranule),
              ElementsAre(HostExtent{7 * kGranule, 2 * kGranule}));
}

TEST(SlabRooms, CutThePlaceInOrder) {
  EXPECT_THAT(SlabRooms({{0, 4 * kMiB}, {10 * kMiB, 6 * kMiB}},
                        {2 * kMiB, 4 * kMiB, 4 * kMiB}),
              ElementsAre(ElementsAre(HostExtent{0, 2 * kMiB}),
                          ElementsAre(HostExtent{2 * kMiB, 2 * kMiB},
                                      HostExtent{10 * kMiB, 2 * kMiB}),
                          ElementsAre(HostExtent{12 * kMiB, 4 * kMiB})));
}

TEST(SlabRooms, ThatDoNotAddUpAreNone) {
  EXPECT_THAT(SlabRooms({{0, 4 * kMiB}}, {2 * kMiB}), IsEmpty());
  EXPECT_THAT(SlabRooms({{0, 4 * kMiB}}, {2 * kMiB, 4 * kMiB}), IsEmpty());
  EXPECT_THAT(SlabRooms({}, {2 * kMiB}), IsEmpty());
  EXPECT_THAT(SlabRooms({{0, 4 * kMiB}}, {}), IsEmpty());
}

TEST(HostBooks, LeasesThatAreNotKnownHaveNoRoom) {
  HostBooks books(4 * kMiB);
  EXPECT_THAT(books.Place(kFirst), IsEmpty());
  EXPECT_THAT(books.TrueCopy(kFirst), IsNull());
  books.MarkTrue(kFirst);
  books.MarkUntrue(kFirst);
  books.Release(kFirst);
  EXPECT_EQ(books.total().reserved_bytes, 0u);
}

}  // namespace
}  // namespace gmb::broker
