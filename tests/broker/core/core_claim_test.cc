// The answers to those whose bytes are kept for somebody else, and how
// operators see it.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/core/core_fixture.h"

namespace gmb::broker {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class CoreClaimTest : public CoreFixture {
 protected:
  CoreClaimTest() : CoreFixture({}, 64 * kMiB) {
    AddHostPool(64 * kMiB);
    for (const char* tenant : {"keeper", "patient", "hasty"}) {
      SetTenant(tenant, quota::Amount::Bytes(0),
                quota::Amount::Bytes(64 * kMiB));
    }
    keeper_session = Connect("keeper");
    EXPECT_TRUE(
        keeper_session->Answer(keeper_session->Acquire(32 * kMiB)).has_grant());
    patient = Connect("patient");
    patient->Acquire(56 * kMiB, 3600);
    // Its claim began after 1 s, and holds from 7 to 13 s.
    clock.Advance(std::chrono::seconds(8));
    core.Tick();
    hasty = Connect("hasty");
  }
  std::vector<std::string> Why(const std::string& tenant) {
    v1::ExplainRequest request;
    request.set_tenant(tenant);
    const auto why = core.Explain(request);
    EXPECT_TRUE(why.ok()) << why.status();
    return {why->findings().begin(), why->findings().end()};
  }

  std::shared_ptr<FakePeer> keeper_session, patient, hasty;
};

TEST_F(CoreClaimTest, ARefusalSaysThatTheMemoryIsKeptAndNotForWhom) {
  const v1::BrokerMessage answer = hasty->Answer(hasty->Acquire(4 * kMiB));
  EXPECT_EQ(answer.error().detail().reason(), v1::POOL_EXHAUSTED);
  EXPECT_EQ(answer.error().detail().deficit_bytes(), 28 * kMiB);
  EXPECT_THAT(
      answer.error().message(),
      AllOf(HasSubstr("kept for a request that is served first"),
            Not(HasSubstr("no such memory")), Not(HasSubstr("patient"))));
}

TEST_F(CoreClaimTest, OperatorsSeeWhoseClaimItIs) {
  EXPECT_THAT(Why("hasty"),
              Contains(AllOf(HasSubstr("patient waits for 56.0 MiB"),
                             HasSubstr("claims what comes free"),
                             HasSubstr("pass again in"))));
  hasty->Acquire(4 * kMiB, 60);
  EXPECT_THAT(Why("hasty"),
              Contains(AllOf(HasSubstr("4.0 MiB waits for its turn"),
                             HasSubstr("requests that are served first"))));
  EXPECT_THAT(Why("patient"),
              Contains(HasSubstr("56.0 MiB waits for memory: 24.0 MiB more")));
}

TEST_F(CoreClaimTest, OneThatWaitsIsServedWhenItLetsOthersPass) {
  const uint64_t request = hasty->Acquire(4 * kMiB, 60);
  clock.Advance(std::chrono::seconds(6));  // 14 s: it lets others pass
  core.Tick();
  EXPECT_TRUE(hasty->Answer(request).has_grant());
}

TEST_F(CoreClaimTest, OperatorsSeeWhoWaitsWithinItsGuarantee) {
  clock.Advance(std::chrono::seconds(6));
  EXPECT_FALSE(hasty->Answer(hasty->SetGate(true)).has_error());
  EXPECT_TRUE(hasty->Answer(hasty->Acquire(16 * kMiB)).has_grant());
  SetTenant("owner", quota::Amount::Bytes(24 * kMiB),
            quota::Amount::Bytes(64 * kMiB));
  const auto owner = Connect("owner");
  owner->Acquire(24 * kMiB, 60);
  EXPECT_THAT(Why("patient"), Contains(HasSubstr("owner waits for 24.0 MiB "
                                                 "within its guarantee")));
}

}  // namespace
}  // namespace gmb::broker
