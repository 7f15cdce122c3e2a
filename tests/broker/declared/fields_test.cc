#include "broker/declared/fields.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace gmb::broker {
namespace {

using quota::Amount;

TEST(Fields, AmountsAreWrittenAsPeopleWriteThem) {
  EXPECT_EQ(WriteAmount(Amount::Fraction(0.25)), "25%");
  EXPECT_EQ(WriteAmount(Amount::Fraction(0.07)), "7%");
  EXPECT_EQ(WriteAmount(Amount::Fraction(0.55)), "55%");
  EXPECT_EQ(WriteAmount(Amount::Bytes(uint64_t{1} << 30)), "1073741824");
  TenantPolicy policy;
  policy.quota.weight = 50;
  EXPECT_EQ(FieldsOf(policy)["weight"], "50");
}

// Also those that no percentage comes to.
TEST(Fields, NoAmountIsChangedByBeingWrittenAndRead) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> share(0, 1);
  for (int i = 0; i < 20'000; ++i) {
    const Amount fraction = Amount::Fraction(share(random));
    EXPECT_EQ(ReadAmount(WriteAmount(fraction)), fraction)
        << WriteAmount(fraction);
    const Amount bytes = Amount::Bytes(random());
    EXPECT_EQ(ReadAmount(WriteAmount(bytes)), bytes);
  }
  for (int percent = 0; percent <= 100; ++percent) {
    const Amount written = Amount::Fraction(percent / 100.0);
    EXPECT_EQ(WriteAmount(written), std::to_string(percent) + "%");
  }
}

TEST(Fields, APolicyComesBackAsItWasWrittenWithoutItsToken) {
  TenantPolicy policy;
  policy.name = "a";
  policy.quota = {Amount::Fraction(1.0 / 3), Amount::Bytes(77), 0.1};
  policy.device_quotas["GPU-1"] = {Amount::Bytes(7), Amount::Fraction(1), 3};
  policy.device_quotas["a/b"] = {Amount::Bytes(8), Amount::Fraction(0.5), 2};
  policy.max_handles = 9;
  policy.max_sessions = 10;
  policy.reclaim = {.may_terminate = true,
                    .min_residency = quota::Nanoseconds(1),
                    .pause_grace = std::chrono::seconds(0),
                    .host_limit = Amount::Fraction(0.3)};
  policy.uids = {0, 1000};
  EXPECT_EQ(PolicyOf("a", FieldsOf(policy)), policy);
  policy.token = "secret";
  for (const auto& [field, text] : FieldsOf(policy))
    EXPECT_NE(text, policy.token) << field;
}

TEST(Fields, WhatADeviceLeavesOutIsAsOnEveryDevice) {
  const TenantPolicy policy =
      PolicyOf("a", {{"devices/GPU-1/limit", "50%"}, {"weight", "2"}});
  EXPECT_EQ(policy.QuotaOn("GPU-1"),
            (quota::TenantQuota{Amount(), Amount::Fraction(0.5), 2}));
  EXPECT_EQ(policy.QuotaOn("GPU-2"),
            (quota::TenantQuota{Amount(), Amount::Fraction(1), 2}));
}

TEST(Fields, AnyTextIsReadAsSomething) {
  const TenantPolicy plain = PolicyOf("a", {});
  for (const char* text : {"", "%", "x%", "-1", " share", "1e999", "\xff"}) {
    Fields fields;
    for (const auto& [field, value] : FieldsOf(plain)) fields[field] = text;
    for (const char* field : {"", "/", "devices/", "devices//", "devices/x"})
      fields[field] = text;
    EXPECT_EQ(PolicyOf("a", fields).name, "a");
  }
  EXPECT_EQ(PolicyOf("a", {{"limit", "much"}, {"strange", "1"}}), plain);
}

TEST(Fields, AFieldThatNobodyWroteHasItsDefault) {
  EXPECT_EQ(DefaultOf("limit"), "100%");
  EXPECT_EQ(DefaultOf("devices/GPU-1/limit"), std::nullopt);
}

TEST(Fields, AreSaidAsTheFileSaysThem) {
  EXPECT_EQ(InWords("limit", "1073741824"), "1GiB");
  EXPECT_EQ(InWords("devices/GPU-1/limit", "67108864"), "64MiB");
  EXPECT_EQ(InWords("host_limit", "1025"), "1025");
  EXPECT_EQ(InWords("guarantee", "0"), "0");
  EXPECT_EQ(InWords("guarantee", "33.3%"), "33.3%");
  EXPECT_EQ(InWords("max_handles", "4096"), "4096");
  EXPECT_EQ(InWords("min_residency", "0ns"), "0s");
  EXPECT_EQ(InWords("pause_grace", "250000000ns"), "250ms");
  EXPECT_EQ(InWords("uids", ""), "none");
}

}  // namespace
}  // namespace gmb::broker
