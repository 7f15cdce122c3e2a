#include "broker/daemon/tenant_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "broker/daemon/store_setup.h"
#include "broker/declared/merge.h"

namespace gmb::broker {
namespace {

using quota::Amount;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::SizeIs;

TenantConfig FromFile(const std::string& name) {
  TenantConfig tenant;
  tenant.policy.name = name;
  tenant.policy.reclaim = {.may_terminate = true,
                           .min_residency = std::chrono::seconds(7),
                           .pause_grace = std::chrono::seconds(8),
                           .host_limit = Amount::Bytes(9)};
  tenant.policy.quota.limit = Amount::Fraction(1);
  tenant.policy.token = "the file's secret";
  return tenant;
}

// The values that operators wrote, and then the file over or beneath it.
Declared Merged(const std::vector<TenantConfig>& file, Declared declared) {
  BrokerConfig config;
  config.tenants = file;
  return StartingState(declared, config, {});
}

TenantPolicy Policy(const std::string& name, const Fields& fields) {
  return PolicyOf(name, fields);
}

void Set(const std::string& name, Fields fields, Declared* declared) {
  WriteFields(name, std::move(fields), {Source::Writer::kOperator, "ann"},
              absl::UnixEpoch(), declared);
}

TEST(TenantSetup, AFilesTenantIsAsTheFileHasIt) {
  const auto tenants =
      MergeTenants({FromFile("a")}, Merged({FromFile("a")}, {}), {});
  ASSERT_THAT(tenants, SizeIs(1));
  EXPECT_FALSE(tenants[0].is_stored);
  EXPECT_FALSE(tenants[0].is_changed);
  EXPECT_EQ(tenants[0].config.policy, FromFile("a").policy);
}

TEST(TenantSetup, AnOperatorsValueWinsAndTheRestIsTheFiles) {
  Declared declared = Merged({FromFile("a")}, {});
  Fields fields = FieldsOf(FromFile("a").policy);
  fields["min_residency"] = "30000000000ns";
  Set("a", fields, &declared);
  const auto tenants =
      MergeTenants({FromFile("a")}, Merged({FromFile("a")}, declared), {});
  ASSERT_THAT(tenants, SizeIs(1));
  EXPECT_TRUE(tenants[0].is_changed);
  EXPECT_FALSE(tenants[0].is_stored);  // its guarantee is the file's
  ReclaimPolicy expected = FromFile("a").policy.reclaim;
  expected.min_residency = std::chrono::seconds(30);
  EXPECT_EQ(tenants[0].config.policy.reclaim, expected);
  EXPECT_EQ(tenants[0].config.policy.token, "the file's secret");
}

TEST(TenantSetup, ThoseWhoseGuaranteeIsAnOperatorsComeFirst) {
  Declared declared;
  Set("z", FieldsOf(Policy("z", {{"guarantee", "25%"}})), &declared);
  const auto tenants =
      MergeTenants({FromFile("a")}, Merged({FromFile("a")}, declared), {});
  ASSERT_THAT(tenants, SizeIs(2));
  EXPECT_EQ(tenants[0].config.policy.name, "z");
  EXPECT_TRUE(tenants[0].is_stored);
}

TEST(TenantSetup, ADeletedTenantStaysDeleted) {
  Declared declared = Merged({FromFile("a")}, {});
  Delete("a", &declared);
  EXPECT_THAT(
      MergeTenants({FromFile("a")}, Merged({FromFile("a")}, declared), {}),
      IsEmpty());
}

TEST(TenantSetup, ATenantThatIsTakenOutOfTheFileIsGoneUnlessAnOperatorMadeIt) {
  Declared declared = Merged({FromFile("a")}, {});
  Set("made", FieldsOf(Policy("made", {})), &declared);
  const auto tenants = MergeTenants({}, Merged({}, declared), {});
  ASSERT_THAT(tenants, SizeIs(1));
  EXPECT_EQ(tenants[0].config.policy.name, "made");
}

TEST(TenantSetup, AnOperatorsValuesForADeviceThatIsGoneAreLeftOut) {
  Declared declared;
  Set("a", FieldsOf(Policy("a", {{"devices/GPU-1/limit", "50%"}})), &declared);
  const auto quotas = [&](const std::string& uuid) {
    return MergeTenants({}, declared, {{"cuda:0", uuid}})[0]
        .config.policy.device_quotas;
  };
  EXPECT_THAT(quotas("GPU-1"), ElementsAre(Key("GPU-1")));
  EXPECT_THAT(quotas("GPU-2"), IsEmpty());
}

// It stays, so that the core refuses it.
TEST(TenantSetup, TheFilesValuesForADeviceThatIsNotHereAreAMistake) {
  TenantConfig a = FromFile("a");
  a.policy.device_quotas["GPU-1"] = a.policy.quota;
  EXPECT_THAT(MergeTenants({a}, Merged({a}, {}), {{"cuda:0", "GPU-2"}})[0]
                  .config.policy.device_quotas,
              ElementsAre(Key("GPU-1")));
}

TEST(TenantSetup, ADefaultTenantThatIsNotThereIsAWarning) {
  for (const std::string known : {"", "a", "made"})
    EXPECT_EQ(DefaultTenantWarning(known, {"a", "made"}), "");
  for (const std::string unknown : {"zz", "gone"}) {
    EXPECT_THAT(DefaultTenantWarning(unknown, {"a", "made"}),
                HasSubstr("there is no tenant " + unknown));
  }
}

}  // namespace
}  // namespace gmb::broker
