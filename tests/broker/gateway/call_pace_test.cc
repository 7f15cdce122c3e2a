#include "broker/gateway/call_pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <vector>

namespace gmb::broker {
namespace {

using std::chrono::seconds;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr CallPace::Time kStart{std::chrono::hours(1)};

class CallPaceTest : public ::testing::Test {
 protected:
  // Which of the connections may read a call.
  std::vector<int> Allowed(CallPace::Time now) const {
    std::vector<int> allowed;
    for (const int& one : connections_) {
      if (pace_.AllowsOne(&one, now)) allowed.push_back(one);
    }
    return allowed;
  }
  void Wait(int connection) { pace_.Wait(&connections_.at(connection)); }
  void Leave(int connection) { pace_.Leave(&connections_.at(connection)); }
  bool Offer(int connection, CallPace::Time now) {
    return pace_.Offer(&connections_.at(connection), now);
  }

  const std::array<int, 4> connections_{0, 1, 2, 3};
  CallPace pace_{4, 1};
};

TEST_F(CallPaceTest, WhileNobodyWaitsWhoeverComesIsRead) {
  EXPECT_THAT(Allowed(kStart), ElementsAre(0, 1, 2, 3));
  pace_.Count(4, kStart);
  EXPECT_THAT(Allowed(kStart), ElementsAre());
  EXPECT_THAT(Allowed(kStart + seconds(1)), ElementsAre(0, 1, 2, 3));
}

TEST_F(CallPaceTest, WhoeverCameFirstIsReadFirst) {
  pace_.Count(4, kStart);
  for (const int connection : {2, 0, 3}) Wait(connection);
  EXPECT_THAT(Allowed(kStart), ElementsAre());
  EXPECT_THAT(Allowed(kStart + seconds(1)), ElementsAre(2));
  EXPECT_THAT(Allowed(kStart + seconds(2)), ElementsAre(0, 2));
  EXPECT_THAT(Allowed(kStart + seconds(3)), ElementsAre(0, 2, 3));

  pace_.Count(1, kStart + seconds(1));
  Leave(2);
  EXPECT_THAT(Allowed(kStart + seconds(1)), ElementsAre());
  EXPECT_THAT(Allowed(kStart + seconds(2)), ElementsAre(0));
}

// However many calls it has.
TEST_F(CallPaceTest, NobodyIsReadBeforeThoseWhoWait) {
  pace_.Count(4, kStart);
  Wait(3);
  EXPECT_THAT(Allowed(kStart + seconds(1)), ElementsAre(3));
  EXPECT_THAT(Allowed(kStart + seconds(2)), ElementsAre(0, 1, 2, 3));
  Leave(3);
  EXPECT_THAT(Allowed(kStart + seconds(1)), ElementsAre(0, 1, 2, 3));
}

TEST_F(CallPaceTest, OnesTurnIsOfferedOnlyWhenItMayRead) {
  pace_.Count(4, kStart);
  Wait(0);
  Wait(1);
  EXPECT_FALSE(Offer(0, kStart));
  EXPECT_TRUE(Offer(0, kStart + seconds(1)));
  EXPECT_FALSE(Offer(1, kStart + seconds(1)));
}

// Else a process could stop all of its tenant's.
TEST_F(CallPaceTest, OneThatReadsNothingInItsTurnLetsOthersPass) {
  pace_.Count(4, kStart);
  const CallPace::Time turn = kStart + seconds(1);
  Wait(0);
  Wait(1);
  EXPECT_TRUE(Offer(0, turn));
  EXPECT_THAT(Allowed(turn), ElementsAre(0));
  EXPECT_FALSE(Offer(0, turn + CallPace::kTurn));
  EXPECT_THAT(Allowed(turn), ElementsAre(1));
  // It has not lost its place behind.
  pace_.Count(2, turn + CallPace::kTurn);
  Leave(1);
  EXPECT_TRUE(Offer(0, turn + 2 * CallPace::kTurn));
}

TEST_F(CallPaceTest, AllHaveEquallyManyTurns) {
  pace_.Count(4, kStart);
  std::array<int, 4> read{};
  for (const int one : connections_) Wait(one);
  for (int i = 1; i <= 400; ++i) {
    const CallPace::Time now = kStart + seconds(i);
    const std::vector<int> allowed = Allowed(now);
    ASSERT_EQ(allowed.size(), 1U);
    ++read.at(allowed.front());
    pace_.Count(1, now);
    Leave(allowed.front());
    Wait(allowed.front());  // it has many more
  }
  EXPECT_THAT(read, Each(100));
}

TEST_F(CallPaceTest, ItIsAtRestWhenNobodyWaitsAndAllIsMadeGood) {
  EXPECT_TRUE(pace_.AtRest(kStart));
  pace_.Count(1, kStart);
  EXPECT_FALSE(pace_.AtRest(kStart));
  EXPECT_TRUE(pace_.AtRest(kStart + seconds(1)));
  Wait(0);
  EXPECT_FALSE(pace_.AtRest(kStart + seconds(1)));
}

}  // namespace
}  // namespace gmb::broker
