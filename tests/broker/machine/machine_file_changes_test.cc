// A configuration file that is edited while programs run (docs/configuration.md,
// "Reload"): what of it is made, and what is held back since it takes too much.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class MachineFileChangesTest : public MachineFixture {
 protected:
  explicit MachineFileChangesTest(const MachineWorld& shape = {})
      : MachineFixture(shape) {}

  static TenantPolicy Policy(const std::string& name, uint64_t guarantee,
                             uint64_t limit = 64) {
    TenantPolicy policy;
    policy.name = name;
    policy.quota = QuotaOf(guarantee, limit);
    return policy;
  }
  static quota::TenantQuota QuotaOf(uint64_t guarantee, uint64_t limit) {
    return {quota::Amount::Bytes(guarantee * kGranule),
            quota::Amount::Bytes(limit * kGranule), 1};
  }
  absl::StatusOr<std::vector<HeldBack>> TryApply(const FileChange& change) {
    absl::StatusOr<std::vector<HeldBack>> held =
        absl::InternalError("not done");
    world.Do("file", [&](Turn& turn) {
      held = world.machine().operators().ApplyFile(change, turn);
    });
    return held;
  }
  // Returns the changes that were held back.
  std::vector<HeldBack> Apply(const FileChange& change) {
    const auto held = TryApply(change);
    EXPECT_TRUE(held.ok()) << held.status();
    return held.value_or(std::vector<HeldBack>());
  }
  absl::Status Check(const FileChange& change) {
    return world.machine().operators().CheckFile(change);
  }
  TenantPolicy Known(const std::string& name) {
    return world.machine().operators().GetPolicy(name).value_or(TenantPolicy());
  }
  uint64_t LimitOf(const std::string& name, const std::string& device) {
    return Known(name).QuotaOn(device).limit.bytes() / kGranule;
  }
};

TEST_F(MachineFileChangesTest, WhatIsAsItWasIsLeftAlone) {
  Apply({.tenants = {Policy("a", 8), Policy("b", 0)}, .leaving = {}});
  EXPECT_EQ(Events("tenant_created").size(), 2u);
  Apply({.tenants = {Policy("a", 8), Policy("b", 4)}, .leaving = {}});
  ASSERT_EQ(Events("tenant_changed").size(), 1u);
  EXPECT_EQ(Events("tenant_changed")[0].tenant(), "b");
}

// Its guarantee, its uids and its token may be another's in the same file.
TEST_F(MachineFileChangesTest, WhatATenantThatLeavesHadIsFreeAtOnce) {
  TenantPolicy old = Policy("old", 48);
  old.uids = {4711};
  old.token = "a token of sixteen bytes and more";
  old.device_quotas["sim-1"] = QuotaOf(48, 64);
  TenantPolicy next = old;
  next.name = "next";
  Apply({.tenants = {old}, .leaving = {}});
  Connect("old");
  const FileChange change{.tenants = {next}, .leaving = {"old"}};
  EXPECT_TRUE(Check(change).ok()) << Check(change);
  EXPECT_EQ(Known("next").name, "") << "it was only checked";
  EXPECT_THAT(Apply(change), IsEmpty());
  EXPECT_EQ(Of("next").effective_guarantee_bytes, 48 * kGranule);
  EXPECT_EQ(Of("old").requested_guarantee_bytes, 0u);
  EXPECT_EQ(Known("old").quota.guarantee, quota::Amount());
  EXPECT_THAT(Known("old").uids, IsEmpty());
  EXPECT_EQ(Known("old").token, "");
}

TEST_F(MachineFileChangesTest, WhatMakesAProcessATenantsIsFreeWhenThatOneGoes) {
  TenantPolicy old = Policy("old", 0);
  old.uids = {4711};
  old.token = "a token of sixteen bytes and more";
  TenantPolicy next = old;
  next.name = "next";
  next.uids = {4711, 4712};
  Apply({.tenants = {old}, .leaving = {}});
  Lease(Connect("old"), 8);
  const FileChange change{.tenants = {next}, .leaving = {"old"}};
  EXPECT_THAT(Apply(change), SizeIs(1)) << "it stays";
  EXPECT_THAT(Known("old").uids, ElementsAre(4711u));
  EXPECT_THAT(Known("next").uids, ElementsAre(4712u));
  EXPECT_EQ(Known("next").token, "");
  EXPECT_NE(Known("old").token, "");
  FileChange later = change;
  later.may_reclaim_bytes = 8 * kGranule;
  EXPECT_THAT(Apply(later), IsEmpty());
  EXPECT_THAT(Known("old").uids, IsEmpty());
  EXPECT_THAT(Known("next").uids, ElementsAre(4711u, 4712u));
  EXPECT_EQ(Known("next").token, next.token);
}

TEST_F(MachineFileChangesTest, AUidIsOfOneTenantAndMayBeSwapped) {
  TenantPolicy a = Policy("a", 0);
  TenantPolicy b = Policy("b", 0);
  a.uids = {1, 2};
  b.uids = {2};
  const FileChange both{.tenants = {a, b}, .leaving = {}};
  EXPECT_EQ(ReasonOf(Check(both)), "BAD_REQUEST");
  EXPECT_THAT(std::string(TryApply(both).status().message()),
              HasSubstr("tenant b: a uid belongs to one tenant: take it from "
                        "tenant a first, or name another: uid=2"));
  EXPECT_EQ(Known("a").name, "") << "nothing of it was made";
  Apply({.tenants = {a}, .leaving = {}});
  EXPECT_EQ(ReasonOf(Check({.tenants = {b}, .leaving = {}})), "BAD_REQUEST");
  EXPECT_EQ(ReasonOf(world.machine().operators().CheckTenant(b)),
            "BAD_REQUEST");
  a.uids = {1};
  Apply({.tenants = {b, a}, .leaving = {}});
  std::swap(a.uids, b.uids);
  Apply({.tenants = {a, b}, .leaving = {}});
  EXPECT_THAT(Known("a").uids, ElementsAre(2u));
}

TEST_F(MachineFileChangesTest, WithoutTheOneThatLeavesItWouldNotFit) {
  Apply({.tenants = {Policy("old", 48)}, .leaving = {}});
  EXPECT_EQ(ReasonOf(Check({.tenants = {Policy("new", 48)}, .leaving = {}})),
            "OVERCOMMITTED");
  EXPECT_EQ(
      ReasonOf(
          TryApply({.tenants = {Policy("new", 48)}, .leaving = {}}).status()),
      "OVERCOMMITTED");
  EXPECT_EQ(Known("new").name, "") << "nothing of it was made";
  EXPECT_TRUE(
      Check({.tenants = {Policy("new", 48)}, .leaving = {"old", "nobody"}})
          .ok());
}

// A tenant that is named is counted with its new value, and not the old one too.
TEST_F(MachineFileChangesTest, GuaranteesThatAreSwappedFitTogether) {
  Apply({.tenants = {Policy("a", 60), Policy("b", 4)}, .leaving = {}});
  const FileChange swapped{.tenants = {Policy("a", 4), Policy("b", 60)},
                           .leaving = {}};
  EXPECT_TRUE(Check(swapped).ok()) << Check(swapped);
  EXPECT_THAT(Apply(swapped), IsEmpty());
  EXPECT_EQ(Of("b").effective_guarantee_bytes, 60 * kGranule);
  EXPECT_EQ(Of("a").effective_guarantee_bytes, 4 * kGranule);
}

TEST_F(MachineFileChangesTest, AMistakeOfOneTenantNamesItAndOneOfAllDoesNot) {
  struct Row {
    TenantPolicy policy;
    std::string reason;
    std::string text;
    bool named;
  };
  TenantPolicy elsewhere = Policy("b", 0);
  elsewhere.device_quotas["sim-7"] = elsewhere.quota;
  TenantPolicy handles = Policy("b", 0);
  handles.max_handles = 0;
  TenantPolicy sessions = Policy("b", 0);
  sessions.max_sessions = 0;
  for (const Row& row :
       {Row{elsewhere, "NO_SUCH_DEVICE", "sim-7", true},
        Row{handles, "BAD_REQUEST", "max_handles", true},
        Row{sessions, "BAD_REQUEST", "max_sessions", true},
        Row{Policy("b", 8, 4), "BAD_REQUEST", "above the limit", true},
        Row{Policy("b", 65), "BAD_REQUEST", "above the limit", true},
        Row{Policy("b", 64), "OVERCOMMITTED", "would exceed", false}}) {
    const auto held =
        TryApply({.tenants = {Policy("a", 1), row.policy}, .leaving = {}});
    const std::string text(held.status().message());
    EXPECT_THAT(text, HasSubstr(row.text));
    EXPECT_EQ(text.rfind("tenant b: ", 0) == 0, row.named) << text;
    EXPECT_EQ(Known("a").name, "") << row.text << ": none of it is made";
  }
}

TEST_F(MachineFileChangesTest, WhatTakesNoMoreThanItMayIsMade) {
  Apply({.tenants = {Policy("a", 0)}, .leaving = {}});
  SimClient* idle = Parked("a");
  Lease(idle, 20);
  FileChange change{.tenants = {Policy("a", 0, 8)},
                    .leaving = {},
                    .may_reclaim_bytes = 12 * kGranule - 1};
  EXPECT_THAT(Apply(change),
              ElementsAre(HeldBack{"a", "sim-1", 12 * kGranule}));
  EXPECT_EQ(Of("a").limit_bytes, 64 * kGranule);
  EXPECT_EQ(Of("a").over_limit_bytes, 0u) << "nothing is taken";
  change.may_reclaim_bytes = 12 * kGranule;
  EXPECT_THAT(Apply(change), IsEmpty());
  EXPECT_EQ(Of("a").limit_bytes, 8 * kGranule);
  EXPECT_EQ(Of("a").over_limit_bytes, 12 * kGranule);
}

// An earlier change takes it already; evicted bytes are no process's to lose.
TEST_F(MachineFileChangesTest, OnlyWhatItTakesBeyondTheLimitOfNowCounts) {
  SetTenant("a");
  SimClient* busy = Active("a");
  Lease(busy, 40);
  SetTenant("a", {.limit = 30});
  ASSERT_EQ(Of("a").over_limit_bytes, 10 * kGranule);
  TenantPolicy lower = Known("a");
  lower.quota.limit = quota::Amount::Bytes(24 * kGranule);
  EXPECT_THAT(Apply({.tenants = {lower}, .leaving = {}}),
              ElementsAre(HeldBack{"a", "sim-1", 6 * kGranule}));
  Park(busy);
  RunFor(seconds(1));
  ASSERT_EQ(Resident("a"), 0u) << "it was one lease";
  EXPECT_THAT(Apply({.tenants = {lower}, .leaving = {}}), IsEmpty());
}

TEST_F(MachineFileChangesTest, WhatTakesLeastIsMadeFirst) {
  std::vector<TenantPolicy> tenants;
  for (const char* name : {"c", "b", "a"}) {
    SetTenant(name);
    tenants.push_back(Policy(name, 0, 2));
  }
  Lease(Connect("a"), 12);
  Lease(Connect("b"), 6);
  Lease(Connect("c"), 6);
  // 4 of `b` or of `c`, and 10 of `a`.
  EXPECT_THAT(Apply({.tenants = tenants,
                     .leaving = {},
                     .may_reclaim_bytes = 7 * kGranule}),
              ElementsAre(HeldBack{"c", "sim-1", 4 * kGranule},
                          HeldBack{"a", "sim-1", 10 * kGranule}));
  EXPECT_EQ(LimitOf("b", "sim-1"), 2u);
  // Both, and too little is left for `a`.
  EXPECT_THAT(Apply({.tenants = tenants,
                     .leaving = {},
                     .may_reclaim_bytes = 13 * kGranule}),
              ElementsAre(HeldBack{"a", "sim-1", 10 * kGranule}));
}

TEST_F(MachineFileChangesTest, ATenantStaysAsLongAsAProcessHoldsItsMemory) {
  Apply({.tenants = {Policy("a", 8), Policy("b", 8)}, .leaving = {}});
  SimClient* keeper = Parked("a");
  Lease(keeper, 4, {.share_as = "w", .keep = true});
  End(keeper);
  Lease(Connect("b"), 4);
  // No process of `a` loses anything: nobody is left.
  EXPECT_THAT(Apply({.tenants = {}, .leaving = {"a", "b", "nobody"}}),
              ElementsAre(HeldBack{"b", "", 4 * kGranule}));
  EXPECT_EQ(Of("a").requested_guarantee_bytes, 0u);
  EXPECT_EQ(Of("b").requested_guarantee_bytes, 8 * kGranule) << "as a whole";
}

// It is seen off already, with a deadline of its own.
TEST_F(MachineFileChangesTest, OneThatIsLeavingIsNotHeldBackAgain) {
  SetTenant("a");
  Lease(Connect("a"), 4);
  Depart("a", seconds(60));
  EXPECT_THAT(Apply({.tenants = {}, .leaving = {"a"}}), IsEmpty());
}

class MachineFileTwoDevicesTest : public MachineFileChangesTest {
 protected:
  static MachineWorld Shape() {
    MachineWorld shape;
    shape.pools = 2;
    return shape;
  }
  MachineFileTwoDevicesTest() : MachineFileChangesTest(Shape()) {}
};

// A limit that is written once is one value: it stays as a whole. One of a
// device stays there alone.
TEST_F(MachineFileTwoDevicesTest, ALimitStaysWhereItWasWritten) {
  Apply({.tenants = {Policy("a", 0)}, .leaving = {}});
  Lease(Connect("a"), 20, {.device = "sim-2"});
  FileChange change{.tenants = {Policy("a", 0, 8)}, .leaving = {}};
  const HeldBack held{"a", "sim-2", 12 * kGranule};
  EXPECT_THAT(Apply(change), ElementsAre(held));
  EXPECT_EQ(LimitOf("a", "sim-1"), 64u);
  EXPECT_EQ(LimitOf("a", "sim-2"), 64u);
  change.tenants[0].device_quotas["sim-2"] = QuotaOf(0, 10);
  EXPECT_THAT(Apply(change),
              ElementsAre(HeldBack{"a", "sim-2", 10 * kGranule}));
  EXPECT_EQ(LimitOf("a", "sim-1"), 8u);
  EXPECT_EQ(LimitOf("a", "sim-2"), 64u);
  // It has one of its own by now, and the file has none any more.
  change.tenants[0].device_quotas.clear();
  EXPECT_THAT(Apply(change), ElementsAre(held));
  EXPECT_EQ(LimitOf("a", "sim-1"), 8u);
  EXPECT_EQ(LimitOf("a", "sim-2"), 64u);
}

// The tenant's processes lose what lies on any device.
TEST_F(MachineFileTwoDevicesTest, WhoLeavesWouldLoseWhatItHasEverywhere) {
  SetTenant("a");
  SimClient* client = Connect("a");
  Lease(client, 4, {.device = "sim-1"});
  Lease(client, 6, {.device = "sim-2"});
  EXPECT_THAT(Apply({.tenants = {}, .leaving = {"a"}}),
              ElementsAre(HeldBack{"a", "", 10 * kGranule}));
}

}  // namespace
}  // namespace gmb::broker
