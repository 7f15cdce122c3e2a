#include "broker/doors/token_bucket.h"

#include <gtest/gtest.h>

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;

constexpr TokenBucket::Time kStart{std::chrono::hours(1)};

int TakeAll(TokenBucket* bucket, TokenBucket::Time now) {
  int taken = 0;
  while (bucket->Take(now)) ++taken;
  return taken;
}

TEST(TokenBucketTest, GivesItsBurstAndThenAsTimePasses) {
  TokenBucket bucket(10, 4);
  EXPECT_EQ(TakeAll(&bucket, kStart), 10);
  EXPECT_EQ(TakeAll(&bucket, kStart + milliseconds(999)), 3);
  EXPECT_EQ(TakeAll(&bucket, kStart + milliseconds(1001)), 1);
  EXPECT_EQ(TakeAll(&bucket, kStart + std::chrono::hours(5)), 10);
}

TEST(TokenBucketTest, WhatIsEarnedCountsUpToTheBurst) {
  TokenBucket bucket(2, 0);
  EXPECT_EQ(TakeAll(&bucket, kStart), 2);
  bucket.Earn(1);
  EXPECT_EQ(TakeAll(&bucket, kStart), 1);
  bucket.Earn(100);
  EXPECT_EQ(TakeAll(&bucket, kStart), 2);
}

}  // namespace
}  // namespace gmb::broker
