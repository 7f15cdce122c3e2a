// Tenants that operators' files declare, over the real service.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/broker/server/admin_fixture.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;

class AdminApplyTest : public AdminFixture {
 protected:
  [[nodiscard]] ReadTenants Reader() override {
    return [this](const std::string& /*yaml*/, const std::string& /*name*/) {
      return tenants_;
    };
  }
  static TenantPolicy Tenant(double limit) {
    TenantPolicy tenant;
    tenant.name = "a";
    tenant.quota.limit = quota::Amount::Fraction(limit);
    return tenant;
  }
  // Of one tenant, which has a limit of its own on the device.
  absl::Status Apply(const std::string& device, bool dry_run = false) {
    TenantPolicy tenant = Tenant(1);
    tenant.device_quotas[device].limit = quota::Amount::Fraction(0.25);
    return Apply(tenant, dry_run);
  }
  absl::Status Apply(const TenantPolicy& tenant, bool dry_run = false) {
    tenants_ = {tenant};
    v1::ApplyRequest request;
    request.set_name("web");
    request.set_dry_run(dry_run);
    v1::ApplyResponse response;
    return Call(&v1::Admin::Stub::Apply, request, &response);
  }

  std::vector<TenantPolicy> tenants_;
};

TEST_F(AdminApplyTest, ADeviceThatIsNotHereIsRefusedAndNothingIsStored) {
  const Declared before = store_->GetDeclared();
  for (const std::string device : {"host-1", "", "\xff"}) {
    for (const bool dry_run : {false, true}) {
      const absl::Status refused = Apply(device, dry_run);
      EXPECT_EQ(ReasonOf(refused), v1::NO_SUCH_DEVICE) << refused;
      EXPECT_THAT(refused.message(), HasSubstr("tenant a: devices"));
    }
  }
  EXPECT_THAT(Apply("host-1").message(), HasSubstr("\"host-1\""));
  EXPECT_EQ(store_->GetDeclared(), before);
  EXPECT_FALSE(core.GetPolicy("a").ok());
}

TEST_F(AdminApplyTest, AValueForADeviceThatIsHereIsInForce) {
  ASSERT_TRUE(Apply("host-0").ok());
  EXPECT_EQ(core.GetPolicy("a")->QuotaOn("host-0").limit,
            quota::Amount::Fraction(0.25));
  // Another value leaves it as it is when its file is refused.
  EXPECT_FALSE(Apply("host-1").ok());
  EXPECT_EQ(core.GetPolicy("a")->QuotaOn("host-0").limit,
            quota::Amount::Fraction(0.25));
}

TEST_F(AdminApplyTest, AValueForADeviceGoesWhenTheFileLeavesItOut) {
  for (const double limit : {1., 0.75}) {
    ASSERT_TRUE(Apply("host-0").ok());
    ASSERT_TRUE(Apply(Tenant(limit)).ok());
    EXPECT_EQ(core.GetPolicy("a")->QuotaOn("host-0").limit,
              quota::Amount::Fraction(limit));
    const Declared declared = store_->GetDeclared();
    EXPECT_FALSE(
        declared.tenants.at("a").fields.contains("devices/host-0/limit"));
  }
}

}  // namespace
}  // namespace gmb::broker
