// A whole file of tenants, as one change.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/error_status.h"
#include "tests/broker/core/core_fixture.h"

namespace gmb::broker {
namespace {

using quota::Amount;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TenantPolicy Policy(const std::string& name, double guarantee,
                    double limit = 1) {
  TenantPolicy policy;
  policy.name = name;
  policy.quota = {Amount::Fraction(guarantee), Amount::Fraction(limit), 1};
  return policy;
}

class CoreFileTest : public CoreFixture {
 protected:
  void SetUp() override {
    AddHostPool(64 * kMiB, "host-0");
    AddHostPool(64 * kMiB, "host-1");
  }
  std::vector<HeldBack> Apply(const FileChange& change) {
    const auto held = core.ApplyFile(change);
    EXPECT_TRUE(held.ok()) << held.status();
    return held.value_or(std::vector<HeldBack>());
  }
  static void Lease(FakePeer* peer, uint64_t bytes, const std::string& device) {
    v1::ClientMessage message;
    message.mutable_acquire()->set_bytes(bytes);
    message.mutable_acquire()->set_device(device);
    EXPECT_TRUE(peer->Answer(peer->Send(message)).has_grant());
  }
  quota::TenantQuota QuotaOf(const std::string& name,
                             const std::string& device = "host-0") {
    return core.GetPolicy(name)->QuotaOn(device);
  }
};

// Each tenant's guarantee falls on one device and rises on the other, so that
// no order of whole tenants would do.
TEST_F(CoreFileTest, GuaranteesThatCrossAreSetAtOnce) {
  const auto with = [](const std::string& name, double on_0, double on_1) {
    TenantPolicy policy = Policy(name, 0);
    policy.device_quotas["host-0"] = {Amount::Fraction(on_0),
                                      Amount::Fraction(1), 1};
    policy.device_quotas["host-1"] = {Amount::Fraction(on_1),
                                      Amount::Fraction(1), 1};
    return policy;
  };
  Apply({.tenants = {with("a", 0.9, 0.1), with("b", 0.1, 0.9)}, .leaving = {}});
  Apply({.tenants = {with("a", 0.1, 0.9), with("b", 0.9, 0.1)}, .leaving = {}});
  const auto b = core.TenantReport("b");
  EXPECT_EQ(b->pools(0).view().guarantee_bytes(), 56 * kMiB);
  EXPECT_EQ(b->pools(1).view().guarantee_bytes(), 6 * kMiB);
}

TEST_F(CoreFileTest, WhatDoesNotFitChangesNothing) {
  Apply({.tenants = {Policy("a", 0.5)}, .leaving = {}});
  const auto held = core.ApplyFile(
      {.tenants = {Policy("a", 0.25), Policy("b", 0.8)}, .leaving = {}});
  EXPECT_THAT(std::string(held.status().message()), HasSubstr("would exceed"));
  EXPECT_EQ(QuotaOf("a").guarantee, Amount::Fraction(0.5));
  EXPECT_FALSE(core.GetPolicy("b").ok());
}

TEST_F(CoreFileTest, AMistakeNamesItsTenant) {
  TenantPolicy b = Policy("b", 0.1);
  b.device_quotas["host-7"] = b.quota;
  const auto unknown =
      core.ApplyFile({.tenants = {Policy("a", 0), b}, .leaving = {}});
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("tenant b: "));
  const auto detail = proto::GetErrorDetail(unknown.status());
  ASSERT_TRUE(detail.has_value()) << "it would look like one of the transport";
  EXPECT_EQ(detail->reason(), v1::NO_SUCH_DEVICE);
  TenantPolicy c = Policy("c", 0.1);
  c.quota.limit = Amount::Bytes(2 * kMiB);
  EXPECT_THAT(std::string(core.ApplyFile({.tenants = {Policy("a", 0), c},
                                          .leaving = {}})
                              .status()
                              .message()),
              HasSubstr("tenant c: "));
  EXPECT_FALSE(core.GetPolicy("a").ok());
}

TEST_F(CoreFileTest, ALimitThatTakesMoreThanItMayStays) {
  Apply({.tenants = {Policy("a", 0)}, .leaving = {}});
  const auto peer = Connect("a");
  Lease(peer.get(), 32 * kMiB, "host-1");
  FileChange change{.tenants = {Policy("a", 0, 0.25)},
                    .leaving = {},
                    .may_reclaim_bytes = 16 * kMiB - 1};
  EXPECT_THAT(Apply(change), ElementsAre(HeldBack{"a", "host-1", 16 * kMiB}));
  EXPECT_EQ(QuotaOf("a", "host-0").limit, Amount::Fraction(1));
  EXPECT_EQ(QuotaOf("a", "host-1").limit, Amount::Fraction(1));
  // One of its own stays alone.
  change.tenants[0].device_quotas["host-1"] = change.tenants[0].quota;
  EXPECT_THAT(Apply(change), ElementsAre(HeldBack{"a", "host-1", 16 * kMiB}));
  EXPECT_EQ(QuotaOf("a", "host-0").limit, Amount::Fraction(0.25));
  EXPECT_EQ(QuotaOf("a", "host-1").limit, Amount::Fraction(1));
  change.may_reclaim_bytes = 16 * kMiB;
  EXPECT_THAT(Apply(change), IsEmpty());
  EXPECT_EQ(QuotaOf("a", "host-1").limit, Amount::Fraction(0.25));
}

TEST_F(CoreFileTest, ATenantThatLeavesGivesItsGuaranteeAtOnce) {
  Apply({.tenants = {Policy("a", 0.75)}, .leaving = {}});
  const auto peer = Connect("a");
  EXPECT_THAT(Apply({.tenants = {Policy("b", 0.75)}, .leaving = {"a"}}),
              IsEmpty());
  EXPECT_EQ(QuotaOf("a").guarantee, Amount());
  EXPECT_EQ(QuotaOf("b").guarantee, Amount::Fraction(0.75));
}

TEST_F(CoreFileTest, ATenantThatLeavesGivesItsUidsAndTokenAtOnce) {
  TenantPolicy a = Policy("a", 0);
  a.uids = {4'000'000};
  a.token = "a token of sixteen bytes and more";
  Apply({.tenants = {a}, .leaving = {}});
  const auto peer = Connect("a");
  TenantPolicy b = a;
  b.name = "b";
  EXPECT_TRUE(core.CheckFile({.tenants = {b}, .leaving = {"a"}}).ok());
  EXPECT_FALSE(core.GetPolicy("b").ok()) << "it was only checked";
  EXPECT_THAT(Apply({.tenants = {b}, .leaving = {"a"}}), IsEmpty());
  EXPECT_THAT(core.GetPolicy("a")->uids, IsEmpty());
  EXPECT_EQ(core.GetPolicy("a")->token, "");
  EXPECT_EQ(core.GetPolicy("b")->token, a.token);
}

TEST_F(CoreFileTest, OneThatHoldsMemoryStaysWithItsGuarantee) {
  Apply({.tenants = {Policy("a", 0.75)}, .leaving = {}});
  const auto peer = Connect("a");
  Lease(peer.get(), 8 * kMiB, "host-0");
  EXPECT_FALSE(
      core.ApplyFile({.tenants = {Policy("b", 0.75)}, .leaving = {"a"}}).ok());
  EXPECT_THAT(Apply({.tenants = {}, .leaving = {"a"}}),
              ElementsAre(HeldBack{"a", "", 8 * kMiB}));
  EXPECT_EQ(QuotaOf("a").guarantee, Amount::Fraction(0.75));
}

}  // namespace
}  // namespace gmb::broker
