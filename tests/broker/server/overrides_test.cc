// Values for a time end, with a core and a store of their own.
#include "broker/server/overrides.h"

#include <gmock/gmock.h>

#include <string>

#include "broker/declared/merge.h"
#include "tests/broker/server/admin_parts_fixture.h"

namespace gmb::broker {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class OverridesTest : public AdminPartsFixture {
 protected:
  void SetUp() override {
    AdminPartsFixture::SetUp();
    for (const char* const name : {"a", "b"}) {
      Declare(name, 0);
      InForce(name, 0);
    }
    waiting_.Start();
  }
  void TearDown() override {
    waiting_.Stop();
    overrides_.Stop();
    Finish();
  }
  // In the store and in the core, until that time of the wall clock.
  void Override(const std::string& name, double guarantee, absl::Time until) {
    const Fields fields{
        {"guarantee", WriteAmount(quota::Amount::Fraction(guarantee))}};
    ASSERT_TRUE(store_
                    ->Change(Record(),
                             [&](Declared* next) {
                               WriteUntil(name, fields,
                                          {Source::Writer::kOverride, "tester"},
                                          clock.WallTime(), until, next);
                             })
                    .ok());
    InForce(name, guarantee);
  }
  // Those whose time is over by now end, as soon as the timer says so.
  void Await() {
    InTurn([this] { overrides_.Await(*store_->Shown()); });
  }
  bool AwaitGuarantee(const std::string& name, double guarantee) {
    const bool came = AwaitPool([&](const v1::PoolStatus& /*pool*/) {
      return HasGuarantee(name, guarantee);
    });
    Finish();
    return came;
  }
  absl::Time Over() { return clock.WallTime() - absl::Milliseconds(1); }

  WaitingGuarantees waiting_{&core, store_.get(), &events, &not_in_force_,
                             &calls_};
  Overrides overrides_{&core,          store_.get(), &clock,
                       &not_in_force_, &waiting_,    &calls_};
};

TEST_F(OverridesTest, AValueWhoseTimeIsOverGivesWayToTheFormerOne) {
  Declare("a", 0.2);
  Override("a", 0.5, Over());
  Await();
  EXPECT_TRUE(AwaitGuarantee("a", 0.2));
  EXPECT_THAT(Audit(), Contains(AllOf(StartsWith("override_ended a by gmbd: "),
                                      HasSubstr("50%"), HasSubstr("20%"))));
  EXPECT_EQ(NextExpiry(*store_->Shown()), std::nullopt);
}

TEST_F(OverridesTest, AValueWhoseTimeIsNotOverStays) {
  Override("a", 0.3, clock.WallTime() + absl::Hours(1));
  Override("b", 0.4, Over());
  Await();
  EXPECT_TRUE(AwaitGuarantee("b", 0));
  EXPECT_TRUE(HasGuarantee("a", 0.3));
  EXPECT_NE(NextExpiry(*store_->Shown()), std::nullopt);
}

TEST_F(OverridesTest, TheNextOneIsAwaitedWithoutAWord) {
  Override("a", 0.3, Over());
  Override("b", 0.4, clock.WallTime() + absl::Milliseconds(300));
  Await();
  EXPECT_TRUE(AwaitGuarantee("a", 0));
  EXPECT_TRUE(AwaitGuarantee("b", 0));
}

TEST_F(OverridesTest, OneRecordOfSeveralNamesNoneAsItsSubject) {
  Override("a", 0.3, Over());
  Override("b", 0.4, Over());
  Await();
  EXPECT_TRUE(AwaitGuarantee("b", 0));
  EXPECT_THAT(Audit(), Contains(StartsWith("override_ended  by gmbd: ")));
}

TEST_F(OverridesTest, ItIsOverAlthoughTheDiskDoesNotTakeIt) {
  Override("a", 0.3, Over());
  {
    const FullDisk full;
    Await();
    EXPECT_TRUE(AwaitGuarantee("a", 0));
  }
  EXPECT_EQ(NextExpiry(*store_->Shown()), std::nullopt);
  EXPECT_THAT(Audit(), Each(Not(StartsWith("override_ended"))));
}

TEST_F(OverridesTest, AFormerGuaranteeThatDoesNotFitIsLeftOutAndWaitedFor) {
  Declare("a", 0.5);
  Override("a", 0.1, Over());
  InForce("b", 0.7);
  Await();
  EXPECT_TRUE(AwaitPool(
      [&](const v1::PoolStatus&) { return not_in_force_.size() == 1; }));
  Finish();
  EXPECT_EQ(core.GetPolicy("a")->quota.guarantee, quota::Amount());
  v1::GetStatusResponse status;
  not_in_force_.AddTo(&status);
  EXPECT_THAT(status.not_in_force(0),
              StartsWith("tenant a is not as declared"));
  InForce("b", 0);
  EXPECT_TRUE(AwaitGuarantee("a", 0.5));
  EXPECT_EQ(not_in_force_.size(), 0U);
}

TEST_F(OverridesTest, NothingEndsOnceItHasStopped) {
  Override("a", 0.3, clock.WallTime() + absl::Milliseconds(50));
  Await();
  overrides_.Stop();
  absl::SleepFor(absl::Milliseconds(100));
  Finish();
  EXPECT_TRUE(HasGuarantee("a", 0.3));
}

}  // namespace
}  // namespace gmb::broker
