// Peers over real sockets read what they were sent, or do not.
#include "broker/server/unread_sockets.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/broker/server/connected_pair.h"

namespace gmb::broker {
namespace {

class UnreadSocketsTest : public ::testing::Test {
 protected:
  // A connection in the table, whose peer has an fd unread.
  uint64_t Add(ConnectedPair* pair) {
    pair->CountUnread(in_flight_);
    ConnectedPair::SendFd(*pair->connection);
    return table_.Add(std::move(pair->connection));
  }
  // It ends, as the handle server ends it.
  void End(uint64_t id) {
    const std::unique_ptr<HandleConnection> connection = table_.Take(id);
    unread_.Leave(*connection);
  }

  const ipc::EpollSet epoll_ = ipc::EpollSet::Create().value();
  ConnectionTable table_{&epoll_};
  // Room for one frame of a tenant.
  const std::shared_ptr<FdsInFlight> in_flight_ =
      std::make_shared<FdsInFlight>(8);
  UnreadSockets unread_;
};

TEST_F(UnreadSocketsTest, FdsThatAPeerHasReadAreGivenBack) {
  ConnectedPair pair;
  Add(&pair);
  EXPECT_TRUE(unread_.Look(table_));
  EXPECT_FALSE(HasRoom(in_flight_));
  pair.Read();
  EXPECT_FALSE(unread_.Look(table_));
  EXPECT_TRUE(HasRoom(in_flight_));
}

TEST_F(UnreadSocketsTest, FdsThatAPeerHasNotReadOutlastItsConnection) {
  ConnectedPair pair;
  End(Add(&pair));
  EXPECT_TRUE(unread_.any_left());
  EXPECT_TRUE(unread_.Look(table_));
  EXPECT_FALSE(HasRoom(in_flight_));
  pair.Read();
  EXPECT_FALSE(unread_.Look(table_));
  EXPECT_FALSE(unread_.any_left());
  EXPECT_TRUE(HasRoom(in_flight_));
}

TEST_F(UnreadSocketsTest, WhatAPeerLeftUnreadAsItDiedIsGivenBack) {
  ConnectedPair pair;
  End(Add(&pair));
  pair.peer.reset();
  EXPECT_FALSE(unread_.Look(table_));
  EXPECT_TRUE(HasRoom(in_flight_));
}

TEST_F(UnreadSocketsTest, APeerThatHasReadAllLeavesNothing) {
  ConnectedPair read;
  const uint64_t id = Add(&read);
  read.Read();
  End(id);
  EXPECT_FALSE(unread_.any_left());
  ConnectedPair without_session;
  unread_.Leave(*without_session.connection);
  EXPECT_FALSE(unread_.any_left());
}

TEST_F(UnreadSocketsTest, OneThatIsReadDoesNotHideOneThatIsNot) {
  ConnectedPair read;
  ConnectedPair unread;
  read.CountUnread(std::make_shared<FdsInFlight>(8));
  ConnectedPair::SendFd(*read.connection);
  read.Read();
  Add(&unread);
  (void)table_.Add(std::move(read.connection));
  EXPECT_TRUE(unread_.Look(table_));
}

TEST_F(UnreadSocketsTest, TheNextLookMayBeSomeTimeAfterTheLast) {
  EXPECT_TRUE(unread_.MayLookAgain(std::chrono::steady_clock::now()));
  const auto before = std::chrono::steady_clock::now();
  (void)unread_.Look(table_);
  const auto after = std::chrono::steady_clock::now();
  EXPECT_FALSE(unread_.MayLookAgain(before + std::chrono::milliseconds(199)));
  EXPECT_TRUE(unread_.MayLookAgain(after + std::chrono::milliseconds(200)));
}

}  // namespace
}  // namespace gmb::broker
