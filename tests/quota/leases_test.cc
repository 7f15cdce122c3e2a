#include "quota/leases.h"

#include <gtest/gtest.h>

#include <vector>

namespace gmb::quota {
namespace {

constexpr TenantId kOwner{3};
constexpr PoolId kFirst{1}, kSecond{2};

class LeasesTest : public ::testing::Test {
 protected:
  LeasesTest() {
    for (const PoolId id : {kSecond, kFirst}) {
      Ledger& ledger = pools_.Open(id, 1).ledger;
      ledger.SetTarget(1000);
      ledger.Settle();
      ledger.SetQuota(kOwner, {.guarantee = Amount::Bytes(100),
                               .limit = Amount::Bytes(500)});
    }
  }

  LeaseId Grant(PoolId pool, uint64_t bytes, bool hard = true) {
    return leases_.Grant({.session = SessionId{7},
                          .tenant = kOwner,
                          .pool = pool,
                          .bytes = bytes,
                          .handles = 2,
                          .hard = hard},
                         pools_);
  }
  const Account& AccountIn(PoolId pool) {
    return *pools_.Find(pool)->ledger.Find(kOwner);
  }

  Pools pools_;
  Leases leases_;
};

TEST_F(LeasesTest, AreChargedUntilTheyEnd) {
  const LeaseId lease = Grant(kFirst, 40);
  EXPECT_EQ(AccountIn(kFirst).HardBytes(), 40);
  EXPECT_EQ(AccountIn(kFirst).handles, 2);
  EXPECT_EQ(pools_.HeldBytes(kOwner), 40);
  EXPECT_EQ(leases_.End(lease, pools_)->bytes, 40);
  EXPECT_EQ(leases_.End(lease, pools_), std::nullopt);
  EXPECT_EQ(pools_.HeldBytes(kOwner), 0);
  EXPECT_EQ(leases_.size(), 0);
}

TEST_F(LeasesTest, MoveBetweenHardSoftAndEvicted) {
  const LeaseId lease = Grant(kFirst, 40);
  EXPECT_EQ(leases_.SetHard(lease, true, pools_), nullptr) << "it is";
  EXPECT_FALSE(leases_.SetHard(lease, false, pools_)->hard);
  EXPECT_EQ(AccountIn(kFirst).soft_bytes, 40);
  EXPECT_TRUE(leases_.Evict(lease, pools_)->evicted);
  EXPECT_EQ(leases_.Evict(lease, pools_), nullptr) << "it is";
  EXPECT_EQ(leases_.SetHard(lease, true, pools_), nullptr) << "it is evicted";
  EXPECT_EQ(AccountIn(kFirst).ResidentBytes(), 0);
  EXPECT_EQ(pools_.HeldBytes(kOwner), 40) << "evicted bytes are still leased";
  EXPECT_FALSE(leases_.BringBack(lease, pools_).hard);
  EXPECT_EQ(AccountIn(kFirst).soft_bytes, 40);
  EXPECT_EQ(AccountIn(kFirst).evicted_bytes, 0);
}

TEST_F(LeasesTest, IdsGoOnAfterAdoptedOnes) {
  leases_.Adopt({.id = LeaseId{9},
                 .lease = {.tenant = kOwner,
                           .pool = kFirst,
                           .bytes = 10,
                           .handles = 1,
                           .hard = false,
                           .evicted = true}},
                pools_);
  EXPECT_EQ(AccountIn(kFirst).evicted_bytes, 10);
  leases_.GoOnFrom(4);
  EXPECT_EQ(Grant(kFirst, 10), LeaseId{10});
  leases_.GoOnFrom(20);
  EXPECT_EQ(Grant(kFirst, 10), LeaseId{21});
}

TEST_F(LeasesTest, ARestoreIsAddedUpByPoolAndBySession) {
  Request request;
  request.leases = {Grant(kSecond, 5), Grant(kFirst, 10), Grant(kFirst, 20)};
  leases_.CollectParts(request);
  ASSERT_EQ(request.parts.size(), 2);
  EXPECT_EQ(request.parts[0].pool, kFirst);
  EXPECT_EQ(request.parts[0].ask.bytes, 30);
  EXPECT_TRUE(request.parts[0].ask.restore);
  EXPECT_EQ(request.PartIn(kSecond)->ask.bytes, 5);
  EXPECT_EQ(request.sessions, std::vector{SessionId{7}});
  for (const LeaseId lease : request.leases) EXPECT_TRUE(leases_.Share(lease));
  leases_.CollectParts(request);
  EXPECT_TRUE(request.sessions.empty()) << "shared ones are no session's";
}

TEST_F(LeasesTest, ARequestIsWithinTheGuaranteeIfEachOfItsPartsIs) {
  Request request;
  request.tenant = kOwner;
  request.parts = {{.pool = kFirst, .ask = {.bytes = 100}},
                   {.pool = kSecond, .ask = {.bytes = 100}}};
  for (const PoolId id : {kFirst, kSecond}) pools_.Find(id)->ledger.Settle();
  EXPECT_TRUE(pools_.IsWithinGuarantee(request));
  Grant(kSecond, 1);
  EXPECT_FALSE(pools_.IsWithinGuarantee(request));
}

TEST_F(LeasesTest, ACopyOfThePoolsHasBooksOfItsOwn) {
  Pools copy = pools_;
  Grant(kFirst, 40);
  EXPECT_EQ(copy.HeldBytes(kOwner), 0);
  EXPECT_EQ(copy.Ids(), (std::vector{kFirst, kSecond}));
}

}  // namespace
}  // namespace gmb::quota
