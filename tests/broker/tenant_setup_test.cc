#include "broker/daemon/tenant_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
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
using ::testing::Pair;
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

// The tenants of a start whose file changes nothing.
std::vector<StartingTenant> Starting(
    const std::vector<TenantConfig>& file, const Declared& declared,
    const std::map<std::string, std::string>& uuids = {}) {
  return MergeTenants(file, declared, declared, uuids);
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
  const auto tenants = Starting({FromFile("a")}, Merged({FromFile("a")}, {}));
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
      Starting({FromFile("a")}, Merged({FromFile("a")}, declared));
  ASSERT_THAT(tenants, SizeIs(1));
  EXPECT_TRUE(tenants[0].is_changed);
  EXPECT_FALSE(tenants[0].is_stored);  // its guarantee is the file's
  ReclaimPolicy expected = FromFile("a").policy.reclaim;
  expected.min_residency = std::chrono::seconds(30);
  EXPECT_EQ(tenants[0].config.policy.reclaim, expected);
  EXPECT_EQ(tenants[0].config.policy.token, "the file's secret");
}

TEST(TenantSetup, ThoseWhoseGuaranteeIsAnOperatorsComeLast) {
  Declared declared;
  Set("0", FieldsOf(Policy("0", {{"guarantee", "25%"}})), &declared);
  const auto tenants =
      Starting({FromFile("a")}, Merged({FromFile("a")}, declared));
  ASSERT_THAT(tenants, SizeIs(2));
  EXPECT_EQ(tenants[1].config.policy.name, "0");
  EXPECT_TRUE(tenants[1].is_stored);
}

// An operator's limit, which a value for a time of the guarantee had let in.
TEST(TenantSetup, AFilesGuaranteeMayGoWhereItIsAboveAnOlderLimitOfAnOperator) {
  TenantConfig a = FromFile("a");
  a.policy.quota.guarantee = Amount::Fraction(0.5);
  Declared stored = Merged({a}, {});
  Fields fields = FieldsOf(a.policy);
  fields["limit"] = "30%";
  Set("a", fields, &stored);
  const StartingTenant same = Starting({a}, Merged({a}, stored))[0];
  EXPECT_TRUE(same.MayGoWithout(/*is_above_limit=*/true));
  EXPECT_FALSE(same.MayGoWithout(/*is_above_limit=*/false));
  a.policy.quota.guarantee = Amount::Fraction(0.6);
  const StartingTenant edited =
      MergeTenants({a}, stored, Merged({a}, stored), {})[0];
  EXPECT_FALSE(edited.MayGoWithout(true)) << "the file has just written it";
}

TEST(TenantSetup, AUidOfTwoTenantsIsTheOnesWhoGotItLast) {
  TenantConfig z = FromFile("z");
  z.policy.uids = {1000, 1001};
  Declared declared = Merged({z}, {});
  Set("a", FieldsOf(Policy("a", {{"uids", "1000"}})), &declared);
  const auto uids = [](const std::vector<StartingTenant>& tenants) {
    std::map<std::string, std::vector<uint32_t>> all;
    for (const StartingTenant& tenant : tenants)
      all[tenant.config.policy.name] = tenant.config.policy.uids;
    return all;
  };
  testing::internal::CaptureStderr();
  EXPECT_THAT(
      uids(Starting({z}, Merged({z}, declared))),
      ElementsAre(Pair("a", ElementsAre(1000)), Pair("z", ElementsAre(1001))));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("uid 1000 is declared by two tenants, and is a's"));
  z.policy.uids = {1000, 1002};
  EXPECT_THAT(
      uids(Starting({z}, Merged({z}, declared))),
      ElementsAre(Pair("a", IsEmpty()), Pair("z", ElementsAre(1000, 1002))));
}

TEST(TenantSetup, ADeletedTenantStaysDeleted) {
  Declared declared = Merged({FromFile("a")}, {});
  Delete("a", &declared);
  EXPECT_THAT(Starting({FromFile("a")}, Merged({FromFile("a")}, declared)),
              IsEmpty());
}

TEST(TenantSetup, ATenantThatIsTakenOutOfTheFileIsGoneUnlessAnOperatorMadeIt) {
  Declared declared = Merged({FromFile("a")}, {});
  Set("made", FieldsOf(Policy("made", {})), &declared);
  const auto tenants = Starting({}, Merged({}, declared));
  ASSERT_THAT(tenants, SizeIs(1));
  EXPECT_EQ(tenants[0].config.policy.name, "made");
}

TEST(TenantSetup, AnOperatorsValuesForADeviceThatIsGoneAreLeftOut) {
  Declared declared;
  Set("a", FieldsOf(Policy("a", {{"devices/GPU-1/limit", "50%"}})), &declared);
  const auto quotas = [&](const std::string& uuid) {
    return Starting({}, declared, {{"cuda:0", uuid}})[0]
        .config.policy.device_quotas;
  };
  EXPECT_THAT(quotas("GPU-1"), ElementsAre(Key("GPU-1")));
  EXPECT_THAT(quotas("GPU-2"), IsEmpty());
}

// It stays, so that the core refuses it.
TEST(TenantSetup, TheFilesValuesForADeviceThatIsNotHereAreAMistake) {
  TenantConfig a = FromFile("a");
  a.policy.device_quotas["GPU-1"] = a.policy.quota;
  EXPECT_THAT(Starting({a}, Merged({a}, {}), {{"cuda:0", "GPU-2"}})[0]
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
