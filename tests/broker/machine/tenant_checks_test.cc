// Operators' changes of tenants and pools before they are made: amounts that
// come to nothing, previews, and names of what there is not.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/error_status.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using quota::Amount;
using testing::HasSubstr;

class TenantChecksTest : public MachineFixture {
 protected:
  explicit TenantChecksTest(const MachineWorld& shape = {})
      : MachineFixture(shape) {}

  OperatorDesk& Desk() { return world.machine().operators(); }
  static TenantPolicy Policy(const std::string& name) {
    TenantPolicy policy;
    policy.name = name;
    policy.quota = {Amount(), Amount::Fraction(1), 1};
    return policy;
  }
  static TenantPolicy WithLimit(const std::string& name, Amount limit) {
    TenantPolicy policy = Policy(name);
    policy.quota.limit = limit;
    return policy;
  }
  static TenantPolicy WithGuarantee(const std::string& name, Amount guarantee) {
    TenantPolicy policy = Policy(name);
    policy.quota.guarantee = guarantee;
    return policy;
  }
  static TenantPolicy WithHostLimit(const std::string& name, Amount limit) {
    TenantPolicy policy = Policy(name);
    policy.reclaim.host_limit = limit;
    return policy;
  }
  void Set(const TenantPolicy& policy) {
    world.Do("set tenant", [&](Turn& turn) {
      EXPECT_TRUE(Desk().SetTenant(policy, turn).ok());
    });
  }
  // "" or the field that is wrong.
  std::string WrongIn(const TenantPolicy& policy) {
    const absl::Status checked = Desk().CheckTenant(policy);
    if (checked.ok()) return "";
    EXPECT_EQ(ReasonOf(checked), "BAD_REQUEST") << checked;
    EXPECT_THAT(std::string(checked.message()), HasSubstr("comes to nothing"));
    const auto detail = proto::GetErrorDetail(checked);
    return detail.has_value() ? detail->field() : "no field";
  }
};

// 75 bytes for 75% would take all that the tenant has.
TEST_F(TenantChecksTest, AnAmountBelowOneGranuleIsAMistake) {
  const Amount little = Amount::Bytes(kGranule - 1);
  EXPECT_EQ(WrongIn(WithLimit("new", little)), "limit");
  EXPECT_EQ(WrongIn(WithGuarantee("new", Amount::Bytes(75))), "guarantee");
  EXPECT_EQ(WrongIn(WithLimit("new", Amount::Fraction(0.001))), "limit");
  EXPECT_EQ(WrongIn(WithLimit("new", Amount::Bytes(kGranule))), "");
  EXPECT_EQ(WrongIn(WithGuarantee("new", Amount::Bytes(kGranule))), "");
  TenantPolicy both = WithLimit("new", little);
  both.quota.guarantee = Amount::Bytes(1);
  EXPECT_EQ(WrongIn(both), "guarantee") << "the first of them";
}

TEST_F(TenantChecksTest, NothingIsMeantByANoughtHoweverItIsWritten) {
  for (const Amount nought : {Amount::Bytes(0), Amount::Fraction(0)}) {
    EXPECT_EQ(WrongIn(WithLimit("new", nought)), "");
    EXPECT_EQ(WrongIn(WithGuarantee("new", nought)), "");
    EXPECT_EQ(WrongIn(WithHostLimit("new", nought)), "");
  }
}

TEST_F(TenantChecksTest, WhatATenantHasAlreadyIsNoMistakeOfThisChange) {
  // One that an earlier broker has stored.
  TenantPolicy known = WithLimit("a", Amount::Bytes(75));
  known.reclaim.host_limit = Amount::Bytes(1);
  Set(known);
  known.quota.weight = 2;
  EXPECT_EQ(WrongIn(known), "");
  known.quota.limit = Amount::Bytes(76);
  EXPECT_EQ(WrongIn(known), "limit");
  known.quota.limit = Amount::Bytes(75);
  known.reclaim.host_limit = Amount::Bytes(2);
  EXPECT_EQ(WrongIn(known), "host_limit");
}

TEST_F(TenantChecksTest, AHostLimitIsInGranulesOfTheHostPool) {
  const uint64_t granule = device::kHostPoolGranularityBytes;
  EXPECT_EQ(WrongIn(WithHostLimit("new", Amount::Bytes(granule - 1))),
            "host_limit");
  EXPECT_EQ(WrongIn(WithHostLimit("new", Amount::Bytes(granule))), "");
}

TEST_F(TenantChecksTest, AmountsThatMeanSomethingAreThenCheckedTogether) {
  EXPECT_EQ(ReasonOf(Desk().CheckTenant(
                WithGuarantee("new", Amount::Bytes(65 * kGranule)))),
            "BAD_REQUEST")
      << "it is above the limit, all of the pool";
  EXPECT_EQ(ReasonOf(Desk().CheckTenant(Policy("No Name"))), "BAD_REQUEST");
  Set(WithGuarantee("a", Amount::Fraction(0.5)));
  // It is counted once: its own old guarantee makes way.
  EXPECT_TRUE(Desk().CheckTenant(WithGuarantee("a", Amount::Fraction(1))).ok());
  EXPECT_EQ(
      ReasonOf(Desk().CheckTenant(WithGuarantee("b", Amount::Fraction(1)))),
      "OVERCOMMITTED");
}

TEST_F(TenantChecksTest, APreviewSaysWhatTheChangeWouldTakeAndTakesNothing) {
  SetTenant("a");
  SimClient* idle = Parked("a");
  Lease(idle, 20);
  const auto takes = [&](const TenantPolicy& policy) {
    const auto changes = Desk().Preview(policy);
    EXPECT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes[0].device(), "sim-1");
    return changes[0].takes_bytes() / kGranule;
  };
  EXPECT_EQ(takes(WithLimit("a", Amount::Bytes(8 * kGranule))), 12u);
  EXPECT_EQ(takes(WithLimit("a", Amount::Bytes(20 * kGranule))), 0u);
  EXPECT_EQ(takes(WithLimit("new", Amount::Bytes(8 * kGranule))), 0u);
  EXPECT_EQ(Of("a").over_limit_bytes, 0u);
  SetTenant("a", {.limit = 15});
  EXPECT_EQ(takes(WithLimit("a", Amount::Bytes(8 * kGranule))), 7u)
      << "the rest is being taken already";
}

TEST_F(TenantChecksTest, WhatThereIsNotIsNamed) {
  const auto names = [](const absl::Status& status, const std::string& reason,
                        const std::string& name) {
    EXPECT_EQ(ReasonOf(status), reason);
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  };
  names(Desk().GetPolicy("nobody").status(), "NO_SUCH_TENANT", "nobody");
  names(Desk().IdOf("nobody").status(), "NO_SUCH_TENANT", "nobody");
  names(Desk().BeginDelete("nobody").status(), "NO_SUCH_TENANT", "nobody");
  names(Desk().ResolveDevice("sim-7").status(), "NO_SUCH_DEVICE", "sim-7");
  names(Desk().CheckResize("sim-7", Amount::Fraction(1)), "NO_SUCH_DEVICE",
        "sim-7");
  SetTenant("a");
  EXPECT_EQ(Desk().GetPolicy("a")->name, "a");
  EXPECT_EQ(*Desk().IdOf("a"), IdOf("a"));
  EXPECT_EQ(*Desk().ResolveDevice(""), "sim-1") << "the only one";
}

class TenantChecksTwoDevicesTest : public TenantChecksTest {
 protected:
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.pools = 2;
    shape.host_granules = 0;
    return shape;
  }
  TenantChecksTwoDevicesTest() : TenantChecksTest(Shape()) {}
};

// An amount that one device alone is too small for is meant all the same.
TEST_F(TenantChecksTwoDevicesTest, OneDeviceOnWhichItIsSomethingIsEnough) {
  TenantPolicy policy = Policy("new");
  policy.device_quotas["sim-2"] = {Amount(), Amount::Bytes(75), 1};
  EXPECT_EQ(WrongIn(policy), "limit") << "it is changed on that one alone";
  policy.quota.limit = Amount::Bytes(8 * kGranule);
  EXPECT_EQ(WrongIn(policy), "");
  policy.device_quotas["sim-1"] = policy.device_quotas["sim-2"];
  EXPECT_EQ(WrongIn(policy), "limit");
}

TEST_F(TenantChecksTwoDevicesTest, WithoutAHostPoolItsLimitIsNone) {
  EXPECT_EQ(WrongIn(WithHostLimit("new", Amount::Bytes(1))), "");
}

TEST_F(TenantChecksTwoDevicesTest, EachDeviceHasItsPreview) {
  SetTenant("a");
  Lease(Connect("a"), 20, {.device = "sim-2"});
  const auto changes =
      Desk().Preview(WithLimit("a", Amount::Bytes(8 * kGranule)));
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].device(), "sim-1");
  EXPECT_EQ(changes[0].takes_bytes(), 0u);
  EXPECT_EQ(changes[1].device(), "sim-2");
  EXPECT_EQ(changes[1].takes_bytes(), 12 * kGranule);
  EXPECT_EQ(ReasonOf(Desk().ResolveDevice("").status()), "NO_SUCH_DEVICE")
      << "which of the two?";
}

}  // namespace
}  // namespace gmb::broker
