// Guarantees that do not fit, with a core and a store of their own.
#include "broker/server/waiting_guarantees.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/broker/server/admin_parts_fixture.h"

namespace gmb::broker {
namespace {

class WaitingGuaranteesTest : public AdminPartsFixture {
 protected:
  // a is to have half of the pool, and b has too much for that.
  void SetUp() override {
    AdminPartsFixture::SetUp();
    Declare("a", 0.5);
    Declare("b", 0.7);
    InForce("a", 0);
    InForce("b", 0.7);
    not_in_force_.Drop("a", "a has no guarantee.");
  }
  void TearDown() override {
    if (started_) waiting_.Stop();
    Finish();
  }
  void Start() {
    waiting_.Start();
    started_ = true;
  }
  bool AwaitSettled() {
    return AwaitPool([&](const v1::PoolStatus& /*pool*/) {
      return not_in_force_.size() == 0;
    });
  }
  void OnChanged(const std::string& tenant) {
    InTurn([&] { waiting_.OnChanged(tenant); });
  }
  // Events so far have been listened to, and what they gave rise to is done.
  void AwaitEvents() {
    std::promise<void> delivered;
    const uint64_t listener = events.Subscribe([&](const v1::Event& event) {
      if (event.kind() == "test_end") delivered.set_value();
    });
    v1::Event end;
    end.set_kind("test_end");
    events.Publish(end);
    events.Wake();
    delivered.get_future().wait();
    events.Unsubscribe(listener);
    Finish();
  }

  bool started_ = false;
  WaitingGuarantees waiting_{&core, store_.get(), &events, &not_in_force_,
                             &calls_};
};

TEST_F(WaitingGuaranteesTest, OneThatTheStartLeftOutComesWhenThereIsRoom) {
  Start();
  InForce("b", 0.6);
  AwaitEvents();
  EXPECT_EQ(not_in_force_.size(), 1U);
  EXPECT_TRUE(HasGuarantee("a", 0));
  InForce("b", 0.5);
  EXPECT_TRUE(AwaitSettled());
  EXPECT_TRUE(HasGuarantee("a", 0.5));
}

TEST_F(WaitingGuaranteesTest, NothingIsTriedOnceItHasStopped) {
  Start();
  waiting_.Stop();
  started_ = false;
  InForce("b", 0);
  AwaitEvents();
  EXPECT_TRUE(HasGuarantee("a", 0));
}

// Another value of it is not in force.
TEST_F(WaitingGuaranteesTest, ATenantWithItsGuaranteeIsNotWaitedFor) {
  Declare("a", 0);
  Start();
  InForce("b", 0.1);
  AwaitEvents();
  InTurn([this] { waiting_.OnFit("a"); });
  EXPECT_EQ(not_in_force_.size(), 1U);
}

TEST_F(WaitingGuaranteesTest, OneThatIsAddedIsTriedAtOnce) {
  not_in_force_.Settle("a");
  Start();
  InForce("b", 0);
  AwaitEvents();
  EXPECT_TRUE(HasGuarantee("a", 0)) << "nobody waits for it";
  InTurn([this] {
    not_in_force_.Drop("a", "a has no guarantee.");
    waiting_.Add("a");
  });
  EXPECT_TRUE(AwaitSettled());
  EXPECT_TRUE(HasGuarantee("a", 0.5));
}

TEST_F(WaitingGuaranteesTest, AnOperatorsWordOnAnotherValueSettlesNothing) {
  Start();
  InTurn([this] { waiting_.OnSet("a"); });
  EXPECT_EQ(not_in_force_.size(), 1U);
  Declare("a", 0);
  InTurn([this] { waiting_.OnSet("a"); });
  EXPECT_EQ(not_in_force_.size(), 0U);
}

TEST_F(WaitingGuaranteesTest, AChangeSettlesItWithAnotherGuaranteeAlone) {
  Start();
  ASSERT_TRUE(core.SetTenant(Policy("a", 0, /*weight=*/3)).ok());
  OnChanged("a");
  EXPECT_EQ(not_in_force_.size(), 1U);
  Declare("a", 0.1);
  InForce("a", 0.1);
  OnChanged("a");
  EXPECT_EQ(not_in_force_.size(), 0U);
}

TEST_F(WaitingGuaranteesTest, AChangeOfADevicesLimitSettlesNoGuaranteeThere) {
  const auto on_device = [](double guarantee, double limit) {
    TenantPolicy policy = Policy("a", 0);
    policy.device_quotas["host-0"] = {quota::Amount::Fraction(guarantee),
                                      quota::Amount::Fraction(limit), 1};
    return policy;
  };
  ASSERT_TRUE(store_->PutTenant(on_device(0.5, 0.6), Record()).ok());
  ASSERT_TRUE(core.SetTenant(on_device(0, 0.4)).ok());
  Start();
  ASSERT_TRUE(core.SetTenant(on_device(0, 0.6)).ok());
  OnChanged("a");
  EXPECT_EQ(not_in_force_.size(), 1U);
  InForce("b", 0.1);
  EXPECT_TRUE(AwaitSettled());
  EXPECT_EQ(core.GetPolicy("a")->QuotaOn("host-0").guarantee,
            quota::Amount::Fraction(0.5));
}

TEST_F(WaitingGuaranteesTest, AQuotaForADeviceThatIsNotHereIsSettledWithIt) {
  TenantPolicy elsewhere = Policy("a", 0);
  elsewhere.device_quotas["gone-0"].limit = quota::Amount::Fraction(0.5);
  ASSERT_TRUE(store_->PutTenant(elsewhere, Record()).ok());
  Start();
  OnChanged("a");
  EXPECT_EQ(not_in_force_.size(), 1U);
  Declare("a", 0);
  OnChanged("a");
  EXPECT_EQ(not_in_force_.size(), 0U);
}

TEST_F(WaitingGuaranteesTest, ATenantThatIsGoneHasNothingLeftOut) {
  Start();
  ASSERT_TRUE(core.DeleteTenant("a").ok());
  OnChanged("a");
  EXPECT_EQ(not_in_force_.size(), 0U);
}

TEST_F(WaitingGuaranteesTest, OneThatFitsAfterAllIsSettled) {
  Start();
  InTurn([this] { waiting_.OnFit("a"); });
  EXPECT_EQ(not_in_force_.size(), 0U);
  InForce("b", 0);
  AwaitEvents();
  EXPECT_TRUE(HasGuarantee("a", 0)) << "it is not waited for any more";
}

}  // namespace
}  // namespace gmb::broker
