#include "broker/machine/room_promises.h"

#include "broker/hostpool/host_books.h"
#include "gtest/gtest.h"
#include "quota/units.h"

namespace gmb::broker {
namespace {

class RoomPromisesTest : public testing::Test {
 protected:
  static constexpr uint64_t kGranule = uint64_t{2} << 20;
  static constexpr quota::TenantId kA{1}, kB{2};
  static constexpr quota::RequestId kFirst{1}, kSecond{2};

  bool LeaveRoomFor(quota::TenantId tenant, uint64_t granules) const {
    return promises_.LeaveRoomFor(books_, tenant, granules * kGranule);
  }
  void Promise(quota::RequestId request, quota::TenantId tenant,
               uint64_t granules) {
    promises_.Add(request, tenant, granules * kGranule);
  }

  HostBooks books_{10 * kGranule};
  RoomPromises promises_;
};

TEST_F(RoomPromisesTest, RoomIsPromisedOnce) {
  EXPECT_TRUE(LeaveRoomFor(kA, 10));
  EXPECT_FALSE(LeaveRoomFor(kA, 11));
  Promise(kFirst, kA, 6);
  EXPECT_TRUE(LeaveRoomFor(kB, 4));
  EXPECT_FALSE(LeaveRoomFor(kB, 5));
  Promise(kSecond, kB, 4);
  EXPECT_FALSE(LeaveRoomFor(kA, 1));
  EXPECT_EQ(promises_.size(), 2u);
}

TEST_F(RoomPromisesTest, WhatIsOverIsOverOnce) {
  Promise(kFirst, kA, 6);
  EXPECT_TRUE(promises_.Has(kFirst));
  EXPECT_TRUE(promises_.End(kFirst));
  EXPECT_FALSE(promises_.End(kFirst));
  EXPECT_FALSE(promises_.Has(kFirst));
  EXPECT_TRUE(LeaveRoomFor(kA, 10));
  EXPECT_TRUE(LeaveRoomFor(kB, 10));
}

TEST_F(RoomPromisesTest, ATenantsOwnCountAgainstItsLimit) {
  books_.SetLimit(kA, 6 * kGranule);
  Promise(kFirst, kA, 4);
  EXPECT_TRUE(LeaveRoomFor(kA, 2));
  EXPECT_FALSE(LeaveRoomFor(kA, 3));
  EXPECT_TRUE(LeaveRoomFor(kB, 6));
}

TEST_F(RoomPromisesTest, WhatIsReservedMeanwhileIsNotPromised) {
  Promise(kFirst, kA, 6);
  ASSERT_EQ(books_.Reserve(kB, quota::LeaseId{1}, 8 * kGranule).outcome,
            HostBooks::Outcome::kReserved);
  EXPECT_FALSE(LeaveRoomFor(kB, 1));
  EXPECT_TRUE(promises_.End(kFirst));
  EXPECT_TRUE(LeaveRoomFor(kB, 2));
  EXPECT_FALSE(LeaveRoomFor(kB, 3));
}

TEST_F(RoomPromisesTest, WithoutAHostPoolThereIsNone) {
  const HostBooks off(0);
  EXPECT_FALSE(promises_.LeaveRoomFor(off, kA, kGranule));
}

}  // namespace
}  // namespace gmb::broker
