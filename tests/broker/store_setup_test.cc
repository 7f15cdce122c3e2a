#include "broker/daemon/store_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "broker/declared/merge.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A start in the directory: what it logs, and what its audit log then has.
struct Started {
  absl::Status status;
  std::string log;
  std::vector<AuditRecord> audit;
};
Started Start(const TempDirectory& directory, bool fresh_state) {
  testing::internal::CaptureStderr();
  const auto store = OpenQuotaStore(directory.path(), fresh_state);
  Started started{store.status(), testing::internal::GetCapturedStderr(), {}};
  if (store.ok()) started.audit = (*store)->ListAudit(100).value();
  return started;
}

TEST(StoreSetup, ANewDirectoryIsNothingToSpeakOf) {
  const TempDirectory directory;
  for (int start = 0; start < 2; ++start) {
    const Started started = Start(directory, /*fresh_state=*/false);
    EXPECT_TRUE(started.status.ok());
    EXPECT_EQ(started.log, "");
    EXPECT_THAT(started.audit, IsEmpty());
  }
}

TEST(StoreSetup, AnEmptyDatabaseIsSaidAndAudited) {
  const TempDirectory directory;
  std::ofstream(directory / "gmb.db");
  const Started started = Start(directory, /*fresh_state=*/false);
  EXPECT_TRUE(started.status.ok());
  EXPECT_THAT(started.log, HasSubstr(" warning state_empty "));
  ASSERT_EQ(started.audit.size(), 1U);
  EXPECT_EQ(started.audit[0].action, "empty_state");
  EXPECT_EQ(Start(directory, false).log, "") << "it is not empty any more";
}

TEST(StoreSetup, FreshStateIsAuditedWithThePlaceOfTheOldOne) {
  const TempDirectory directory;
  std::ofstream(directory / "gmb.db") << std::string(4096, 'x');
  EXPECT_TRUE(absl::IsDataLoss(Start(directory, false).status));
  const Started started = Start(directory, /*fresh_state=*/true);
  EXPECT_TRUE(started.status.ok()) << started.status;
  EXPECT_THAT(started.log, HasSubstr("state_set_aside"));
  ASSERT_EQ(started.audit.size(), 1U);
  EXPECT_EQ(started.audit[0].action, "fresh_state");
  EXPECT_THAT(started.audit[0].operator_name, HasSubstr("(gmbd)"));
  EXPECT_TRUE(std::filesystem::exists(started.audit[0].detail));
}

BrokerConfig FileOf(const std::string& name, double limit) {
  BrokerConfig config;
  TenantConfig tenant;
  tenant.policy.name = name;
  tenant.policy.quota.limit = quota::Amount::Fraction(limit);
  config.tenants = {tenant};
  return config;
}

TEST(StoreSetup, WhatChangedInTheFileIsStoredAndListedOnce) {
  const TempDirectory directory;
  const auto start = [&](const BrokerConfig& config) {
    testing::internal::CaptureStderr();
    const auto store = OpenQuotaStore(directory.path(), false).value();
    const Declared before = store->GetDeclared();
    StoreFile(before, StartingState(before, config, {}), store.get());
    testing::internal::GetCapturedStderr();
    return store->ListAudit(100).value();
  };
  EXPECT_THAT(start(FileOf("a", 0.5)), IsEmpty()) << "the first file";
  EXPECT_THAT(start(FileOf("a", 0.5)), IsEmpty()) << "nothing changed";
  for (int again = 0; again < 2; ++again) {
    const std::vector<AuditRecord> audit = start(FileOf("a", 0.75));
    ASSERT_EQ(audit.size(), 1U);
    EXPECT_EQ(audit[0].action, "apply_file");
    EXPECT_EQ(audit[0].detail, "a: limit 50% -> 75%");
  }
}

TEST(StoreSetup, WhatWasSetForATimeIsOverThoughNoBrokerRan) {
  const BrokerConfig file = FileOf("a", 0.75);
  Declared stored = StartingState({}, file, {});
  const absl::Time now = absl::Now();
  const auto set_until = [&](absl::Time until) {
    WriteUntil("a", {{"limit", "50%"}}, {Source::Writer::kOperator, "ann"},
               now - absl::Hours(2), until, &stored);
    return InForce(StartingState(WithoutEnded(stored), file, {}))
        .tenants[0]
        .quota.limit;
  };
  EXPECT_EQ(set_until(now + absl::Hours(1)), quota::Amount::Fraction(0.5));
  EXPECT_EQ(set_until(now - absl::Hours(1)), quota::Amount::Fraction(0.75));
}

}  // namespace
}  // namespace gmb::broker
