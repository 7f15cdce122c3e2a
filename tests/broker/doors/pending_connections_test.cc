#include "broker/doors/pending_connections.h"

#include <gtest/gtest.h>

#include <set>

namespace gmb::broker {
namespace {

using Time = PendingConnections::Time;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kListener = 1;
constexpr uint64_t kOtherListener = 2;

TEST(PendingConnectionsTest, ExpireInTheOrderTheyCame) {
  PendingConnections pending(10);
  EXPECT_FALSE(pending.NextDeadline().has_value());
  const Time start;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(
        pending.Add(i, kListener, 100, start + seconds(i)).has_value());
  }
  EXPECT_EQ(pending.NextDeadline(), start);
  EXPECT_TRUE(pending.TakeExpired(start - milliseconds(1)).empty());
  EXPECT_EQ(pending.TakeExpired(start + seconds(1)),
            (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ(pending.NextDeadline(), start + seconds(2));
  pending.Remove(2);
  pending.Remove(2);  // gone already
  EXPECT_EQ(pending.size(), 0U);
  EXPECT_TRUE(pending.TakeExpired(Time::max()).empty());
}

TEST(PendingConnectionsTest, TheOldestOfEqualsMakesRoom) {
  PendingConnections pending(2);
  EXPECT_FALSE(pending.Add(1, kListener, 100, Time()).has_value());
  EXPECT_FALSE(pending.Add(2, kListener, 100, Time()).has_value());
  EXPECT_EQ(pending.Add(3, kListener, 100, Time()), 1U);
  EXPECT_EQ(pending.Add(4, kListener, 100, Time()), 2U);
  EXPECT_EQ(pending.size(), 2U);
}

TEST(PendingConnectionsTest, AFloodOfOneProcessDoesNotPushOutAnother) {
  PendingConnections pending(8);
  ASSERT_FALSE(pending.Add(1, kListener, 100, Time()).has_value());
  for (uint64_t id = 2; id < 10'000; ++id)
    EXPECT_NE(pending.Add(id, kListener, 666, Time()), 1U);
  EXPECT_EQ(pending.size(), 8U);
}

TEST(PendingConnectionsTest,
     AFloodOfManyProcessesDoesNotPushOutAnotherListener) {
  PendingConnections pending(8);
  ASSERT_FALSE(pending.Add(1, kOtherListener, 100, Time()).has_value());
  ASSERT_FALSE(pending.Add(2, kOtherListener, 100, Time()).has_value());
  for (uint64_t id = 3; id < 10'000; ++id) {
    const std::optional<uint64_t> victim =
        pending.Add(id, kListener, static_cast<pid_t>(id), Time());
    EXPECT_NE(victim, 1U);
    EXPECT_NE(victim, 2U);
  }
}

}  // namespace
}  // namespace gmb::broker
