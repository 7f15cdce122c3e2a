#include "broker/server/tenant_change.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

using quota::Amount;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// 10% to 50% everywhere, but 8 MiB to 90% with weight 3 on host-1.
TenantPolicy TwoQuotas() {
  TenantPolicy policy;
  policy.name = "a";
  policy.quota = {Amount::Fraction(0.1), Amount::Fraction(0.5), 1};
  policy.device_quotas["host-1"] = {Amount::Bytes(8 * kMiB),
                                    Amount::Fraction(0.9), 3};
  policy.uids = {1000, 1001};
  return policy;
}

std::string WrongField(const v1::SetTenantRequest& request) {
  const absl::Status checked = CheckQuantities(request);
  if (checked.ok()) return "";
  EXPECT_TRUE(absl::IsInvalidArgument(checked));
  return proto::GetErrorDetail(checked)->field();
}

TEST(TenantChangeTest, WithoutADeviceOnlyTheNamedFieldsOfEveryQuotaChange) {
  TenantPolicy policy = TwoQuotas();
  v1::SetTenantRequest request;
  request.set_weight(2);
  PutOver(request, "", &policy);
  EXPECT_EQ(policy.quota, (quota::TenantQuota{Amount::Fraction(0.1),
                                              Amount::Fraction(0.5), 2}));
  ASSERT_EQ(policy.device_quotas.size(), 1U);
  EXPECT_EQ(
      policy.device_quotas["host-1"],
      (quota::TenantQuota{Amount::Bytes(8 * kMiB), Amount::Fraction(0.9), 2}));
}

TEST(TenantChangeTest, WithADeviceItsQuotaAloneChanges) {
  TenantPolicy policy = TwoQuotas();
  v1::SetTenantRequest request;
  request.mutable_limit()->set_bytes(16 * kMiB);
  PutOver(request, "host-0", &policy);
  PutOver(request, "host-1", &policy);
  EXPECT_EQ(policy.quota, TwoQuotas().quota);
  EXPECT_EQ(
      policy.device_quotas["host-0"],
      (quota::TenantQuota{Amount::Fraction(0.1), Amount::Bytes(16 * kMiB), 1}))
      << "begins as the quota of every device";
  EXPECT_EQ(policy.device_quotas["host-1"],
            (quota::TenantQuota{Amount::Bytes(8 * kMiB),
                                Amount::Bytes(16 * kMiB), 3}));
}

TEST(TenantChangeTest, ADeviceGetsNoQuotaOfItsOwnWhenNoneIsNamed) {
  TenantPolicy policy = TwoQuotas();
  v1::SetTenantRequest request;
  request.set_max_sessions(3);
  PutOver(request, "host-0", &policy);
  EXPECT_EQ(policy.device_quotas.count("host-0"), 0U);
  EXPECT_EQ(policy.max_sessions, 3U);
}

TEST(TenantChangeTest, HandlesAndSessionsHaveTheBoundsOfTheFile) {
  v1::SetTenantRequest request;
  request.set_max_handles(1'000'000);
  request.set_max_sessions(100'000);
  EXPECT_EQ(WrongField(request), "");
  request.set_max_sessions(100'001);
  EXPECT_EQ(WrongField(request), "max_sessions");
  request.set_max_sessions(0);
  EXPECT_EQ(WrongField(request), "max_sessions");
  request.set_max_sessions(1);
  request.set_max_handles(1'000'001);
  EXPECT_EQ(WrongField(request), "max_handles");
  request.set_max_handles(0);
  EXPECT_EQ(WrongField(request), "max_handles");
}

TEST(TenantChangeTest, AUidThatIsGivenAgainIsStoredOnce) {
  TenantPolicy policy = TwoQuotas();
  v1::SetTenantRequest request;
  for (const uint32_t uid : {7, 0, 7, 0, 8})
    request.mutable_uids()->add_uid(uid);
  PutOver(request, "", &policy);
  EXPECT_EQ(policy.uids, (std::vector<uint32_t>{7, 0, 8}));
}

TEST(TenantChangeTest, UidsStayUnlessTheyAreNamedAndCanBeTakenAway) {
  TenantPolicy policy = TwoQuotas();
  PutOver(v1::SetTenantRequest(), "", &policy);
  EXPECT_EQ(policy.uids, (std::vector<uint32_t>{1000, 1001}));
  v1::SetTenantRequest request;
  request.mutable_uids();
  PutOver(request, "", &policy);
  EXPECT_TRUE(policy.uids.empty());
}

TEST(TenantChangeTest, AQuantityThatIsNoneNamesItsField) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const double weight : {0.0, -1.0, kNaN, HUGE_VAL}) {
    v1::SetTenantRequest request;
    request.set_weight(weight);
    EXPECT_EQ(WrongField(request), "weight") << weight;
  }
  for (const double fraction : {-0.1, 1.1, kNaN}) {
    v1::SetTenantRequest request;
    request.mutable_guarantee()->set_fraction(fraction);
    EXPECT_EQ(WrongField(request), "guarantee") << fraction;
    request.clear_guarantee();
    request.mutable_limit()->set_fraction(fraction);
    EXPECT_EQ(WrongField(request), "limit") << fraction;
  }
  v1::SetTenantRequest request;
  request.mutable_limit()->set_bytes((uint64_t{64} << 40) + 1);
  EXPECT_EQ(WrongField(request), "limit");
  request.mutable_limit()->set_bytes(uint64_t{64} << 40);
  EXPECT_EQ(WrongField(request), "");
}

TEST(TenantChangeTest, OfReclaimOnlyTheNamedFieldsChange) {
  TenantPolicy policy = TwoQuotas();
  v1::SetTenantRequest request;
  request.set_may_terminate(true);
  request.mutable_min_residency()->set_seconds(30);
  request.mutable_min_residency()->set_nanos(5);
  request.mutable_pause_grace();  // named, and 0
  request.mutable_host_limit()->set_bytes(8 * kMiB);
  PutOver(request, "host-1", &policy);
  const ReclaimPolicy all = {
      .may_terminate = true,
      .min_residency = quota::Nanoseconds(30'000'000'005),
      .pause_grace = quota::Nanoseconds(0),
      .host_limit = Amount::Bytes(8 * kMiB)};
  EXPECT_EQ(policy.reclaim, all);
  EXPECT_EQ(policy.device_quotas, TwoQuotas().device_quotas);

  PutOver(v1::SetTenantRequest(), "", &policy);
  EXPECT_EQ(policy.reclaim, all);

  v1::SetTenantRequest no;
  no.set_may_terminate(false);
  PutOver(no, "", &policy);
  EXPECT_FALSE(policy.reclaim.may_terminate);
  EXPECT_EQ(policy.reclaim.min_residency, all.min_residency);
}

TEST(TenantChangeTest, TimesAndTheHostLimitAreBounded) {
  struct Time {
    int64_t seconds;
    int32_t nanos;
    bool good;
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const Time& time :
       {Time{0, 0, true}, Time{3600, 0, true}, Time{3599, 999'999'999, true},
        Time{3600, 1, false}, Time{-1, 0, false}, Time{1, -1, false},
        Time{0, 1'000'000'000, false}, Time{kMost, 0, false},
        Time{-kMost - 1, 0, false}}) {
    for (const std::string field : {"min_residency", "pause_grace"}) {
      v1::SetTenantRequest request;
      google::protobuf::Duration* const duration =
          field == "min_residency" ? request.mutable_min_residency()
                                   : request.mutable_pause_grace();
      duration->set_seconds(time.seconds);
      duration->set_nanos(time.nanos);
      EXPECT_EQ(WrongField(request), time.good ? "" : field)
          << time.seconds << "s " << time.nanos << "ns";
    }
  }
  for (const double fraction : {-0.1, 1.1, HUGE_VAL}) {
    v1::SetTenantRequest request;
    request.mutable_host_limit()->set_fraction(fraction);
    EXPECT_EQ(WrongField(request), "host_limit") << fraction;
  }
}

}  // namespace
}  // namespace gmb::broker
