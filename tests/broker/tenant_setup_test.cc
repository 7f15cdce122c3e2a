#include "broker/daemon/tenant_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

namespace gmb::broker {
namespace {

using quota::Amount;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TenantConfig FromFile(const std::string& name) {
  TenantConfig tenant;
  tenant.policy.name = name;
  tenant.policy.reclaim = {.may_terminate = true,
                           .min_residency = std::chrono::seconds(7),
                           .pause_grace = std::chrono::seconds(8),
                           .host_limit = Amount::Bytes(9)};
  tenant.policy.token = "the file's secret";
  return tenant;
}

TEST(TenantSetup, AFilesPolicyOfReclaimHoldsUntilAnOperatorSetsTheTenant) {
  const auto tenants = MergeTenants({FromFile("a")}, StoredState(), {});
  ASSERT_THAT(tenants, SizeIs(1));
  EXPECT_FALSE(tenants[0].is_stored);
  EXPECT_EQ(tenants[0].config.policy.reclaim, FromFile("a").policy.reclaim);
}

TEST(TenantSetup, AnOperatorsPolicyOfReclaimWinsAsAWhole) {
  StoredState stored;
  TenantPolicy policy;
  policy.name = "a";
  policy.reclaim.min_residency = std::chrono::seconds(30);
  stored.tenants.push_back(policy);
  const auto tenants = MergeTenants({FromFile("a")}, stored, {});
  ASSERT_THAT(tenants, SizeIs(1));
  EXPECT_TRUE(tenants[0].is_stored);
  EXPECT_EQ(tenants[0].config.policy.reclaim, policy.reclaim);
  EXPECT_EQ(tenants[0].config.policy.token, "the file's secret");
}

TEST(TenantSetup, ADeletedTenantStaysDeleted) {
  StoredState stored;
  stored.deleted_tenants = {"a"};
  EXPECT_THAT(MergeTenants({FromFile("a")}, stored, {}), IsEmpty());
}

TEST(TenantSetup, ADefaultTenantThatIsNotThereIsAWarning) {
  StoredState stored;
  TenantPolicy made;
  made.name = "made";
  stored.tenants.push_back(made);
  stored.deleted_tenants = {"gone"};
  std::set<std::string> tenants;
  for (const StartingTenant& tenant :
       MergeTenants({FromFile("a"), FromFile("gone")}, stored, {})) {
    tenants.insert(tenant.config.policy.name);
  }
  for (const std::string known : {"", "a", "made"})
    EXPECT_EQ(DefaultTenantWarning(known, tenants), "");
  for (const std::string unknown : {"zz", "gone"}) {
    EXPECT_THAT(DefaultTenantWarning(unknown, tenants),
                HasSubstr("there is no tenant " + unknown));
  }
}

}  // namespace
}  // namespace gmb::broker
