// Answers that are overdue, of each process and each tenant (docs/reclaim.md,
// "Those who do not answer").
#include "broker/machine/owed_answers.h"

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

class OwedAnswersTest : public testing::Test {
 protected:
  static Session Of(uint64_t id, pid_t pid, uint64_t tenant) {
    PeerIdentity peer;
    peer.pid = pid;
    return Session{.id = id,
                   .peer = peer,
                   .token = {},
                   .tenant = quota::TenantId{tenant},
                   .since = {},
                   .gate = Placed<SessionGate>(nullptr),
                   .talk = {},
                   .group = {},
                   .never_lends = {},
                   .leases = {},
                   .leased_bytes = {},
                   .last_move = {},
                   .waking = {},
                   .trims = {}};
  }
  static constexpr quota::TenantId kA{1};
  static constexpr quota::TenantId kB{2};
  OwedAnswers owed;
};

TEST_F(OwedAnswersTest, AtFirstNobodyOwesAnything) {
  EXPECT_TRUE(owed.Keys().empty());
  EXPECT_EQ(owed.OfTenant(kA), 0u);
  EXPECT_EQ(owed.OfProcess(Of(1, 100, 1)), 0u);
}

TEST_F(OwedAnswersTest, SessionsOfOneProcessOweTogether) {
  const Session one = Of(1, 100, 1);
  const Session two = Of(2, 100, 1);
  const Session another = Of(3, 101, 1);
  owed.Add({11}, one);
  owed.Add({12}, two);
  EXPECT_EQ(owed.OfProcess(one), 2u);
  EXPECT_EQ(owed.OfProcess(two), 2u);
  EXPECT_EQ(owed.OfProcess(another), 0u);
  EXPECT_EQ(owed.OfTenant(kA), 2u);
}

// All of those look alike, and need not be one process.
TEST_F(OwedAnswersTest, WithoutAPidASessionIsAProcessOfItsOwn) {
  const Session one = Of(1, 0, 1);
  const Session two = Of(2, 0, 1);
  owed.Add({11}, one);
  EXPECT_EQ(owed.OfProcess(one), 1u);
  EXPECT_EQ(owed.OfProcess(two), 0u);
}

TEST_F(OwedAnswersTest, AnAnswerIsOwedOnce) {
  const Session one = Of(1, 100, 1);
  owed.Add({11}, one);
  owed.Add({11}, one);
  EXPECT_EQ(owed.OfTenant(kA), 1u);
  EXPECT_EQ(owed.Keys().size(), 1u);
}

TEST_F(OwedAnswersTest, OfASharedLeaseEachUserOwesItsOwn) {
  const Session one = Of(1, 100, 1);
  const Session two = Of(2, 200, 1);
  owed.Add({11}, one);
  owed.Add({11}, two);
  EXPECT_EQ(owed.OfTenant(kA), 2u);
  EXPECT_EQ(owed.Remove({{11}, 1}), kA);
  EXPECT_EQ(owed.OfProcess(one), 0u);
  EXPECT_EQ(owed.OfProcess(two), 1u);
}

TEST_F(OwedAnswersTest, OneThatHasComeIsOwedNoMore) {
  const Session one = Of(1, 100, 1);
  const Session other = Of(2, 100, 2);  // the same process, another tenant
  owed.Add({11}, one);
  owed.Add({12}, one);
  owed.Add({13}, other);
  EXPECT_EQ(owed.OfProcess(one), 3u);
  EXPECT_EQ(owed.OfTenant(kB), 1u);
  EXPECT_EQ(owed.Remove({{13}, 2}), kB);
  EXPECT_EQ(owed.OfTenant(kB), 0u);
  EXPECT_EQ(owed.OfTenant(kA), 2u);
  EXPECT_EQ(owed.Remove({{11}, 1}), kA);
  EXPECT_EQ(owed.Remove({{12}, 1}), kA);
  EXPECT_EQ(owed.OfProcess(one), 0u);
  EXPECT_TRUE(owed.Keys().empty());
}

}  // namespace
}  // namespace gmb::broker
