// Stored values that do not fit together any more: the real broker starts all the
// same, and says which of them are not in force.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "broker/declared/merge.h"
#include "broker/store/quota_store.h"
#include "tests/component/reload_fixture.h"

namespace gmb {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class StoredMisfitsTest : public ReloadTest {
 protected:
  // While no broker runs.
  void Store(const std::function<void(broker::Declared*)>& change) const {
    const auto store = broker::QuotaStore::Open(directory_ / "state");
    ASSERT_TRUE(store.ok()) << store.status();
    broker::Declared declared = (*store)->GetDeclared();
    change(&declared);
    const absl::Status stored = (*store)->PutDeclared(declared, {});
    ASSERT_TRUE(stored.ok()) << stored;
  }
  // 64 MiB, of an apply. Beside a share only the pool says what is above it.
  void StoreLimit(const std::string& field, const std::string& tenant) const {
    Store([&](broker::Declared* declared) {
      broker::Fields fields = broker::InForce(declared->tenants.at(tenant));
      fields[field] = "67108864";
      broker::WriteFields(tenant, fields,
                          {broker::Source::Writer::kApply, "web"}, absl::Now(),
                          declared);
    });
  }
  std::string Asked(const std::string& flag, int exit_code) const {
    std::vector<std::string> arguments = Arguments();
    arguments.push_back(flag);
    GmbdProcess gmbd(arguments);
    EXPECT_EQ(gmbd.WaitForExit(), exit_code) << gmbd.log();
    return gmbd.log();
  }
  std::string Check() const { return Asked("--check", 0); }
};

// As a broker leaves it that does not look at the end when it is asked.
TEST_F(StoredMisfitsTest, AGuaranteeAboveTheLimitThatHoldsAgainIsLeftOut) {
  const std::string others = "- {name: b}\n";
  Write("tenants:\n- {name: a, guarantee: 20%, limit: 60%}\n" + others);
  Start();
  Stop();
  Store([](broker::Declared* declared) {
    const absl::Time ended = absl::Now() - absl::Seconds(1);
    broker::WriteUntil("a", {{"limit", "80%"}},
                       {broker::Source::Writer::kOverride, "ann"}, ended, ended,
                       declared);
    broker::Fields fields = broker::InForce(declared->tenants.at("a"));
    fields["guarantee"] = "70%";
    broker::WriteFields("a", fields, {broker::Source::Writer::kOperator, "bob"},
                        ended, declared);
  });
  EXPECT_THAT(Check(), HasSubstr("tenant a would start without its guarantee"));
  for (int start = 0; start < 2; ++start) {
    Start();
    EXPECT_THAT(gmbd_->log(),
                HasSubstr("stored_guarantee_does_not_fit tenant=a"));
    EXPECT_THAT(Tenant("a"), HasSubstr("60% ="));
    EXPECT_THAT(Doctor(), HasSubstr("tenant a is not as an operator set it"));
  }
  // An upgrade is not refused for it, but for the keeper that it lacks.
  EXPECT_THAT(Asked("--check-handover", 1), HasSubstr("database: 2 tenants"));
  EXPECT_THAT(Reload(), HasSubstr(" reloaded "));
  EXPECT_EQ(Apply("{name: c}").exit_code, 0);
  // It comes back when it fits.
  Reload("tenants:\n- {name: a, guarantee: 20%, limit: 75%}\n" + others,
         "stored_guarantee_fits");
  EXPECT_THAT(Tenant("a"), AllOf(HasSubstr("75% ="), HasSubstr("70% =")));
}

// Bytes beside a share: only the pool says that one is above the other.
TEST_F(StoredMisfitsTest, AFilesGuaranteeAboveAnOperatorsOlderLimitIsLeftOut) {
  Write("tenants:\n- {name: a, guarantee: 50%}\n");
  Start();
  // The time may be over before the limit is set.
  const absl::Time end = absl::Now() + absl::Seconds(30);
  do {
    ASSERT_LT(absl::Now(), end);
    Run({"tenant", "set", "a", "--guarantee", "10%", "--for", "2s"});
  } while (Gmb({"tenant", "set", "a", "--limit", "64MiB"}).exit_code != 0);
  LogUntil("stored_guarantee_does_not_fit");
  Start();
  EXPECT_THAT(gmbd_->log(),
              HasSubstr("stored_guarantee_does_not_fit tenant=a"));
  EXPECT_THAT(Tenant("a"), HasSubstr("64.00 MiB"));
  // An edit that makes it so is a mistake.
  Stop();
  Write("tenants:\n- {name: a, guarantee: 40%}\n");
  GmbdProcess refused(Arguments());
  EXPECT_EQ(refused.WaitForExit(), 1);
  EXPECT_THAT(refused.log(), HasSubstr("guarantee=40% is of the file"));
  // An operator's word on other values leaves it as it is declared.
  Write("tenants:\n- {name: a, guarantee: 50%}\n");
  Start();
  Run({"tenant", "set", "a", "--weight", "2"});
  Run({"tenant", "set", "a", "--limit", "80%"});
  LogUntil("stored_guarantee_fits");
  EXPECT_THAT(Tenant("a"), AllOf(HasSubstr("80% ="), HasSubstr("50% =")));
}

TEST_F(StoredMisfitsTest, AnEditOfTheFilesGuaranteeSettlesIt) {
  Write("tenants:\n- {name: a, guarantee: 50%}\n");
  Start();
  Stop();
  StoreLimit("limit", "a");
  Start();
  // Not "as an operator set it": the guarantee is the file's.
  EXPECT_THAT(Doctor(), HasSubstr("tenant a is not as declared: its guarantee "
                                  "of 50% does not fit any more (guarantee=50% "
                                  "is of the file, limit=67108864 is of apply "
                                  "web)"));
  Reload("tenants:\n- {name: a, guarantee: 10%}\n", "reloaded");
  EXPECT_THAT(Doctor(), Not(HasSubstr("tenant a is not")));
}

// An operator, an apply and the file may change them.
TEST_F(StoredMisfitsTest, OtherValuesOfATenantWithoutItsGuaranteeCanBeChanged) {
  const auto file = [](const std::string& rest) {
    return "tenants:\n- {name: a, guarantee: 50%" + rest + "}\n";
  };
  Write(file(""));
  Start();
  Stop();
  StoreLimit("limit", "a");
  Start();
  Run({"tenant", "set", "a", "--weight", "2"});
  Run({"tenant", "set", "a", "--undo"});
  Run({"tenant", "set", "a", "--undo"});
  EXPECT_THAT(Tenant("a"), ContainsRegex("weight +2 "));
  Run({"tenant", "reset", "a", "--weight"});
  EXPECT_THAT(Tenant("a"), ContainsRegex("weight +1 "));
  const CommandResult applied =
      Apply("{name: a, guarantee: 50%, limit: 64MiB, weight: 3}", {"--force"});
  EXPECT_EQ(applied.exit_code, 0) << applied.output;
  Reload(file(", devices: {host-0: {limit: 64MiB}}"), "reloaded");
  Reload(file(""), "reloaded");
  EXPECT_THAT(Doctor(), HasSubstr("tenant a is not"));
  // It gives the limit back.
  Run({"tenant", "reset", "a", "--limit"});
  LogUntil("stored_guarantee_fits");
  EXPECT_THAT(Tenant("a"), HasSubstr("50% ="));
  EXPECT_THAT(Doctor(), Not(HasSubstr("tenant a is not")));
}

TEST_F(StoredMisfitsTest, AnEditOfADevicesLimitBringsBackItsGuarantee) {
  const auto file = [](const std::string& guarantee, const std::string& limit) {
    return "tenants:\n- {name: a, limit: 90%, devices: {host-0: {guarantee: " +
           guarantee + ", limit: " + limit + "}}}\n";
  };
  Write(file("64MiB", "50%"));
  Start();
  Run({"tenant", "set", "a", "--device", "host-0", "--guarantee", "50%"});
  Stop();
  StoreLimit("devices/host-0/limit", "a");
  Start();
  EXPECT_THAT(gmbd_->log(), HasSubstr("does_not_fit tenant=a"));
  Reload(file("64MiB", "60%"), "stored_guarantee_fits");
  EXPECT_THAT(Tenant("a"), AllOf(HasSubstr("60% ="), HasSubstr("50% =")));
  EXPECT_THAT(Doctor(), Not(HasSubstr("tenant a is not")));
}

TEST_F(StoredMisfitsTest, AStoredGuaranteeGivesWayToTheFilesAndAlone) {
  device_ = "host:180MiB";
  Write("tenants:\n- {name: a, guarantee: 60MiB}\n");
  Start();
  Run({"tenant", "set", "b", "--guarantee", "100MiB"});
  Run({"tenant", "set", "c", "--guarantee", "10MiB"});
  Stop();
  device_ = "host:128MiB";
  EXPECT_THAT(Check(), AllOf(HasSubstr("tenant b would start without"),
                             Not(HasSubstr("tenant c would"))));
  Start();
  EXPECT_THAT(gmbd_->log(), AllOf(HasSubstr("does_not_fit tenant=b"),
                                  Not(HasSubstr("does_not_fit tenant=c"))));
  EXPECT_THAT(Tenant("a"), HasSubstr("60.00 MiB"));
  // That the file's own do not fit is a mistake of it.
  Stop();
  Write(
      "tenants:\n- {name: a, guarantee: 70MiB}\n- {name: d, guarantee: "
      "70MiB}\n");
  GmbdProcess refused(Arguments());
  EXPECT_EQ(refused.WaitForExit(), 1);
  EXPECT_THAT(refused.log(), HasSubstr("would exceed the pool"));
}

}  // namespace
}  // namespace gmb
