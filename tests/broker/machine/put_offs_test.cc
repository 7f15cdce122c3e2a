// Acquires that are put off: in time, and of whom.
#include "broker/machine/put_offs.h"

#include <chrono>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

using quota::PoolId;
using quota::RequestId;
using quota::TenantId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kAll = 1000;

PendingAcquire Asked(uint64_t id, uint64_t pool, uint64_t bytes, int at_ms) {
  PendingAcquire asked;
  asked.id = RequestId{id};
  asked.pool = PoolId{pool};
  asked.bytes = bytes;
  asked.ask_again_at = quota::Instant{} + std::chrono::milliseconds(at_ms);
  return asked;
}

TEST(PutOffsTest, TheFirstIsTheOneWhoseTimeComesFirst) {
  PutOffs put_offs;
  const PendingAcquire late = Asked(1, 1, 10, 30), soon = Asked(2, 1, 10, 20);
  put_offs.Add(late, TenantId{1});
  put_offs.Add(soon, TenantId{2});
  EXPECT_EQ(put_offs.first().second, RequestId{2});
  put_offs.Remove(soon);
  EXPECT_EQ(put_offs.first().second, RequestId{1});
  EXPECT_TRUE(put_offs.Has(late));
  EXPECT_FALSE(put_offs.Has(soon));
  put_offs.Remove(late);
  EXPECT_TRUE(put_offs.empty());
}

TEST(PutOffsTest, SumsAreByTenantAndPool) {
  PutOffs put_offs;
  put_offs.Add(Asked(1, 1, 10, 1), TenantId{1});
  put_offs.Add(Asked(2, 1, 20, 1), TenantId{1});
  put_offs.Add(Asked(3, 1, 40, 1), TenantId{2});
  put_offs.Add(Asked(4, 2, 80, 1), TenantId{1});
  EXPECT_EQ(put_offs.SumOf(TenantId{1}, PoolId{1}).requests, 2u);
  EXPECT_EQ(put_offs.SumOf(TenantId{1}, PoolId{1}).bytes, 30u);
  EXPECT_EQ(put_offs.SumOf(PoolId{1}).requests, 3u);
  EXPECT_EQ(put_offs.SumOf(PoolId{1}).bytes, 70u);
  EXPECT_EQ(put_offs.SumOf(PoolId{2}).bytes, 80u);
  EXPECT_EQ(put_offs.SumOf(TenantId{2}, PoolId{2}).requests, 0u);
  put_offs.Remove(Asked(1, 1, 10, 1));
  EXPECT_EQ(put_offs.SumOf(TenantId{1}, PoolId{1}).bytes, 20u);
  EXPECT_EQ(put_offs.SumOf(PoolId{1}).bytes, 60u);
}

TEST(PutOffsTest, OnesAreListedInTheOrderInWhichTheyWereAskedForFirst) {
  PutOffs put_offs;
  for (const uint64_t id : {5, 1, 3})
    put_offs.Add(Asked(id, 1, 10, 100 - static_cast<int>(id)), TenantId{1});
  put_offs.Add(Asked(4, 1, 10, 1), TenantId{2});
  EXPECT_THAT(put_offs.Of(TenantId{1}, PoolId{1}, {}, kAll),
              ElementsAre(RequestId{1}, RequestId{3}, RequestId{5}));
  EXPECT_THAT(put_offs.Of(TenantId{1}, PoolId{1}, RequestId{1}, 1),
              ElementsAre(RequestId{3}));
  EXPECT_THAT(put_offs.Of(TenantId{1}, PoolId{1}, RequestId{5}, kAll),
              IsEmpty());
  EXPECT_THAT(put_offs.Of(TenantId{1}, PoolId{2}, {}, kAll), IsEmpty());
}

}  // namespace
}  // namespace gmb::broker
