// Values that operators set for a time end, over the real service.
#include <gmock/gmock.h>

#include <future>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/broker/server/admin_fixture.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AdminExpiryTest : public AdminFixture {
 protected:
  absl::Status Set(const std::string& name, double guarantee, int seconds = 0) {
    v1::SetTenantRequest request;
    request.set_name(name);
    request.mutable_guarantee()->set_fraction(guarantee);
    if (seconds > 0) request.mutable_lasts()->set_seconds(seconds);
    v1::SetTenantResponse response;
    return Call(&v1::Admin::Stub::SetTenant, request, &response);
  }
  std::vector<std::string> NotInForce() {
    v1::GetStatusResponse status;
    EXPECT_TRUE(
        Call(&v1::Admin::Stub::GetStatus, v1::GetStatusRequest(), &status)
            .ok());
    return {status.not_in_force().begin(), status.not_in_force().end()};
  }
  // 0.5, lowered for a second, in which b takes the room.
  void LeaveOutGuaranteeOfA() {
    ASSERT_TRUE(Set("a", 0.5).ok());
    ASSERT_TRUE(Set("b", 0).ok());
    ASSERT_TRUE(Set("a", 0.1, 1).ok());
    ASSERT_TRUE(Set("b", 0.7).ok());
    ASSERT_TRUE(AwaitPool([&](const v1::PoolStatus&) {
      return admin_service_->ValuesNotInForce() == 1;
    }));
  }
  quota::Amount GuaranteeOf(const std::string& name) {
    return core.GetPolicy(name)->quota.guarantee;
  }
};

// a comes first, and can only have its own back when b has let go of it.
TEST_F(AdminExpiryTest, GuaranteesThatWereSwappedForATimeAreSwappedBack) {
  ASSERT_TRUE(Set("doorstop", 0).ok());
  ASSERT_TRUE(Set("a", 0.5).ok());
  ASSERT_TRUE(Set("b", 0).ok());
  ASSERT_TRUE(Set("a", 0, 4).ok());
  const absl::Time end = absl::Now() + absl::Seconds(4);
  ASSERT_TRUE(Set("b", 0.5, 3).ok());
  std::future<absl::Status> deleted;
  {
    // Both have ended when the operators' thread looks.
    const base::MutexLock hold(&doorstop_);
    deleted = std::async(std::launch::async, [this] {
      v1::DeleteTenantRequest request;
      request.set_name("doorstop");
      v1::DeleteTenantResponse response;
      return Call(&v1::Admin::Stub::DeleteTenant, request, &response);
    });
    absl::SleepFor(end - absl::Now());
  }
  EXPECT_TRUE(deleted.get().ok());
  EXPECT_TRUE(AwaitPool([&](const v1::PoolStatus&) {
    return GuaranteeOf("a") == quota::Amount::Fraction(0.5);
  }));
  EXPECT_EQ(GuaranteeOf("b"), quota::Amount::Fraction(0));
  EXPECT_EQ(admin_service_->ValuesNotInForce(), 0U);
}

// It waits for what takes its place to be lowered, or deleted.
TEST_F(AdminExpiryTest, AGuaranteeThatDoesNotFitComesBackWhenItDoes) {
  ASSERT_NO_FATAL_FAILURE(LeaveOutGuaranteeOfA());
  EXPECT_TRUE(AwaitPool([&](const v1::PoolStatus&) {
    return GuaranteeOf("a") == quota::Amount();
  }));
  EXPECT_THAT(NotInForce(), ElementsAre(HasSubstr("when it fits")));
  ASSERT_TRUE(Set("b", 0.6).ok()) << "not enough";
  v1::SetTenantRequest heavier;
  heavier.set_name("a");
  heavier.set_weight(2);
  heavier.mutable_lasts()->set_seconds(3600);  // nothing else is written
  v1::SetTenantResponse response;
  ASSERT_TRUE(Call(&v1::Admin::Stub::SetTenant, heavier, &response).ok());
  EXPECT_EQ(admin_service_->ValuesNotInForce(), 1U);
  ASSERT_TRUE(Set("b", 0.5).ok());
  EXPECT_TRUE(AwaitPool([&](const v1::PoolStatus&) {
    return GuaranteeOf("a") == quota::Amount::Fraction(0.5);
  }));
  EXPECT_TRUE(AwaitPool([&](const v1::PoolStatus&) {
    return admin_service_->ValuesNotInForce() == 0;
  }));
  EXPECT_THAT(NotInForce(), IsEmpty());
}

TEST_F(AdminExpiryTest, AnOperatorsNewValueIsNotOverwrittenByTheFormerOne) {
  ASSERT_NO_FATAL_FAILURE(LeaveOutGuaranteeOfA());
  ASSERT_TRUE(Set("a", 0.2).ok());
  EXPECT_EQ(admin_service_->ValuesNotInForce(), 0U);
  ASSERT_TRUE(Set("b", 0).ok());
  ASSERT_TRUE(Set("doorstop", 0).ok());  // behind a retry, if there is one
  EXPECT_EQ(GuaranteeOf("a"), quota::Amount::Fraction(0.2));
}

}  // namespace
}  // namespace gmb::broker
