// The sessions that are open.
#include "broker/machine/session_table.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

class SessionTableTest : public testing::Test {
 protected:
  // Without a tenant: an operator's.
  Session* Add(std::optional<uint64_t> tenant, const std::string& token = "",
               pid_t pid = 1) {
    PeerIdentity peer;
    peer.pid = pid;
    std::optional<quota::TenantId> its;
    if (tenant.has_value()) its = quota::TenantId{*tenant};
    return table.Add(std::unique_ptr<Session>(
        new Session{.id = table.next_id(),
                    .peer = peer,
                    .token = token,
                    .tenant = its,
                    .since = {},
                    .gate = Placed<SessionGate>(nullptr),
                    .talk = {},
                    .group = {},
                    .never_lends = {},
                    .leases = {},
                    .leased_bytes = {},
                    .last_move = {},
                    .waking = {},
                    .trims = {}}));
  }
  // Its id.
  uint64_t Remove(uint64_t id) { return table.Remove(id)->id; }
  SessionTable table;
};

TEST_F(SessionTableTest, ASessionIsFoundByItsIdAndItsToken) {
  Session* one = Add(1, "t1");
  Session* two = Add(1, "t2");
  EXPECT_EQ(table.Find(one->id), one);
  EXPECT_EQ(table.Find(two->id), two);
  EXPECT_EQ(table.WithToken("t2"), two);
  EXPECT_EQ(table.WithToken("t3"), nullptr);
  EXPECT_EQ(table.Find(99), nullptr);
}

TEST_F(SessionTableTest, ATokenIsVoidWhenItsSessionHasEnded) {
  const uint64_t id = Add(1, "t1")->id;
  EXPECT_EQ(Remove(id), id);
  EXPECT_EQ(table.Find(id), nullptr);
  EXPECT_EQ(table.WithToken("t1"), nullptr);
}

TEST_F(SessionTableTest, AnIdIsUsedOnce) {
  const uint64_t first = Add(1)->id;
  Remove(first);
  EXPECT_GT(Add(1)->id, first);
}

TEST_F(SessionTableTest, OperatorsAreCountedApart) {
  const uint64_t client = Add(1, "a")->id;
  const uint64_t command = Add(std::nullopt, "b")->id;
  Add(2, "c");
  EXPECT_EQ(table.clients(), 2u);
  EXPECT_EQ(table.operators(), 1u);
  Remove(command);
  EXPECT_EQ(table.operators(), 0u);
  Remove(client);
  EXPECT_EQ(table.clients(), 1u);
}

TEST_F(SessionTableTest, AListGoesOnBehindTheIdWhereItStopped) {
  const uint64_t first = Add(1, "a")->id;
  const uint64_t second = Add(1, "b")->id;
  const uint64_t third = Add(1, "c")->id;
  EXPECT_EQ(table.FindAfter(0)->id, first);
  Remove(second);
  EXPECT_EQ(table.FindAfter(first)->id, third);
  EXPECT_EQ(table.FindAfter(second)->id, third) << "gone meanwhile";
  EXPECT_EQ(table.FindAfter(third), nullptr);
}

// Their processes may live on and hold slabs; so many are remembered.
TEST_F(SessionTableTest, TheLastClientsThatEndedAreRemembered) {
  for (pid_t pid = 1; pid <= 1030; ++pid) Remove(Add(1, "t", pid)->id);
  EXPECT_EQ(table.ended_clients().size(), 1024u);
  EXPECT_EQ(table.ended_clients().back(), 1030);
  EXPECT_EQ(table.ended_clients().front(), 7);
  Remove(Add(std::nullopt, "op", 5000)->id);
  EXPECT_EQ(table.ended_clients().back(), 1030) << "operators hold nothing";
}

}  // namespace
}  // namespace gmb::broker
