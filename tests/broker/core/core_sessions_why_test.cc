// The reasons that are told of sessions that do not lend their memory, or are
// spared.
#include <chrono>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/core/core_reclaim_fixture.h"

namespace gmb::broker {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

class CoreSessionsWhyTest : public CoreReclaimTest {
 protected:
  google::protobuf::RepeatedPtrField<std::string> Why(
      const std::string& tenant) {
    v1::ExplainRequest request;
    request.set_tenant(tenant);
    const auto why = core.Explain(request);
    EXPECT_TRUE(why.ok()) << why.status();
    return why->findings();
  }
  // It comes into use, and is looked at, as often; then time stands still.
  void WakeOften(FakePeer& peer, std::chrono::milliseconds each =
                                     std::chrono::milliseconds(1)) {
    clock.Hold();
    for (int i = 0; i < 8; ++i) {
      clock.Advance(each);
      peer.Park(++epoch_);
      EXPECT_TRUE(core.Sessions({}).ok());
    }
  }

 private:
  uint64_t epoch_ = 0;
};

TEST_F(CoreSessionsWhyTest, WhoWakesOftenIsSaidAndGivesAfterOthers) {
  const auto often = Holder("idle", 24 * kMiB);
  const uint64_t its = lease_;
  WakeOften(*often);
  EXPECT_THAT(Why("idle"), Contains(HasSubstr("'s session 1 wakes every 1ms")));
  EXPECT_THAT(Why("busy"), Each(Not(HasSubstr("wakes every"))));
  EXPECT_THAT(Why("idle"), Contains(HasSubstr("wakes every 1ms: ")));
  often->Used(/*woken_at_ns=*/1'000'000, /*left_at_ns=*/1'040'000);
  EXPECT_THAT(Why("idle"), Contains(HasSubstr("wakes every 1ms for 40us: ")));
  EXPECT_EQ(core.Sessions({})->sessions(0).usual_use().nanos(), 40'000);
  clock.GoOn();
  const auto calm = Holder("idle", 24 * kMiB);
  calm->Park();
  const auto busy = Connect("busy");
  WakeOften(*often);
  clock.GoOn();
  (void)busy->Acquire(24 * kMiB, kPatience);
  EXPECT_EQ(calm->AwaitEvict().lease_id(), lease_);
  EXPECT_EQ(Lease(its).state(), v1::LeaseInfo::MAPPED);
}

TEST_F(CoreSessionsWhyTest, WhoComesBackSlowlyIsSaidToBeSparedAsItIs) {
  const auto idle = Holder("idle", 24 * kMiB);
  idle->Park();
  const auto busy = Connect("busy");
  const uint64_t request = busy->Acquire(50 * kMiB, kPatience);
  const v1::Evict evict = idle->AwaitEvict();
  idle->Unmapped(lease_, evict.move());
  const v1::BrokerMessage grant = busy->Answer(request);
  ASSERT_TRUE(grant.has_grant());
  busy->Release(grant.grant().lease_id());
  const uint64_t restore = idle->Restore(kPatience);
  const v1::Map map = idle->AwaitMap(evict.move());
  clock.Advance(std::chrono::seconds(2));
  idle->Mapped(lease_, map.move());
  ASSERT_TRUE(idle->Answer(restore).has_restored());
  WakeOften(*idle, std::chrono::milliseconds(500));
  EXPECT_THAT(Why("idle"), Contains(HasSubstr("'s session 1 wakes every")));
}

TEST_F(CoreSessionsWhyTest, WhoNeverParksIsSaidToItsTenantAndToWhoWaits) {
  const auto idle = Holder("idle", 40 * kMiB);
  v1::ClientMessage off;
  off.mutable_set_gate()->set_never_lends("a debugger is attached");
  EXPECT_TRUE(idle->Answer(idle->Send(off)).has_gate_set());
  const auto sentence =
      HasSubstr("idle's session 1 never parks: a debugger is attached");
  EXPECT_THAT(Why("idle"), Contains(sentence));
  EXPECT_THAT(Why("busy"), Each(Not(sentence)));
  const auto busy = Connect("busy");
  (void)busy->Acquire(40 * kMiB, kPatience);
  EXPECT_THAT(Why("busy"), Contains(sentence));
}

}  // namespace
}  // namespace gmb::broker
