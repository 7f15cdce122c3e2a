// The writers of values, for how long, and back: over the real broker and its
// restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/component/filed_broker.h"

namespace gmb {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class OverrideTest : public FiledBrokerTest {
 protected:
  void SetUp() override {
    Write("tenants:\n- {name: a, limit: 75%}\n- {name: b}\n");
    Start();
  }
  std::string Tenant() const { return Run({"tenant", "get", "a"}); }
};

TEST_F(OverrideTest, EachFieldSaysWhoWroteIt) {
  Run({"tenant", "set", "a", "--limit", "50%"});
  EXPECT_THAT(
      Tenant(),
      AllOf(ContainsRegex("limit +50% +operator uid [0-9]+, pid"),
            ContainsRegex("weight +1 +file "), ContainsRegex("limit.*75%")));
  EXPECT_THAT(Run({"tenant", "list"}), AllOf(HasSubstr("limit: operator"),
                                             ContainsRegex("b +host-0.*file")));
  EXPECT_THAT(Run({"tenant", "get", "a", "--output", "json"}),
              AllOf(HasSubstr("\"file_value\": \"75%\""),
                    HasSubstr("\"source\": \"file\"")));
}

TEST_F(OverrideTest, ResetGivesAFieldBackToTheFile) {
  Run({"tenant", "set", "a", "--limit", "50%", "--weight", "3"});
  Run({"tenant", "reset", "a", "--limit"});
  EXPECT_THAT(Tenant(), AllOf(HasSubstr("75% ="), ContainsRegex("weight +3 ")));
  EXPECT_THAT(Run({"audit"}), AllOf(HasSubstr("reset_tenant"),
                                    HasSubstr("a: limit 50% -> 75%")));
  Run({"tenant", "reset", "a"});
  EXPECT_THAT(Tenant(), Not(HasSubstr("operator")));
  Start();
  EXPECT_THAT(Tenant(), Not(HasSubstr("operator")));
  // One that the file does not know has nothing to be given back to.
  Run({"tenant", "set", "mine", "--limit", "50%"});
  EXPECT_THAT(Gmb({"tenant", "reset", "mine"}).output,
              HasSubstr("does not name the tenant"));
}

TEST_F(OverrideTest, AValueForATimeEndsByItself) {
  Run({"tenant", "set", "a", "--limit", "60%"});
  Run({"tenant", "set", "a", "--limit", "50%", "--for", "1s"});
  // Made, set for good, set for a time, and ended.
  const std::string changed = " tenant_changed tenant=a";
  size_t seen = 0;
  for (int i = 0; i < 3; ++i) {
    while (gmbd_->log().find(changed, seen) == std::string::npos)
      ASSERT_TRUE(gmbd_->ReadMore()) << gmbd_->log();
    seen = gmbd_->log().find(changed, seen) + 1;
  }
  EXPECT_THAT(Tenant(), AllOf(HasSubstr("60% ="), Not(HasSubstr("50% ="))));
  EXPECT_THAT(
      Run({"audit"}),
      AllOf(HasSubstr("override_ended"), HasSubstr("60% -> 50% until 2"),
            ContainsRegex("limit 50% until 2[^ ]* -> 60%")));
}

TEST_F(OverrideTest, AlsoWhileNoBrokerRuns) {
  Run({"tenant", "set", "a", "--limit", "50%", "--for", "1s"});
  EXPECT_THAT(Tenant(), AnyOf(HasSubstr("50% ="), HasSubstr("75% =")));
  Start();
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (Tenant().find("75% =") == std::string::npos)
    ASSERT_LT(absl::Now(), end) << gmbd_->log();
  Run({"tenant", "set", "a", "--limit", "50%", "--for", "1h"});
  Start();
  EXPECT_THAT(Tenant(), HasSubstr("50% ="));
}

TEST_F(OverrideTest, AGuaranteeAboveTheLimitThatWillHoldAgainIsRefused) {
  Run({"tenant", "set", "a", "--limit", "90%", "--for", "1h"});
  const CommandResult refused =
      Gmb({"tenant", "set", "a", "--guarantee", "80%"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output,
              AllOf(HasSubstr("once what was set for a time is over"),
                    HasSubstr("guarantee=80% is of operator uid "),
                    HasSubstr("limit=75% is of the file")));
  EXPECT_THAT(Tenant(), Not(HasSubstr("80% =")));
  // It ends sooner.
  Run({"tenant", "set", "a", "--guarantee", "80%", "--for", "30m"});
  EXPECT_THAT(Tenant(), HasSubstr("80% ="));
}

TEST_F(OverrideTest, ANewTenantAndAnUndoAreNotForATime) {
  EXPECT_THAT(
      Gmb({"tenant", "set", "new", "--limit", "5%", "--for", "1h"}).output,
      HasSubstr("make it first"));
  EXPECT_NE(Gmb({"tenant", "get", "new"}).exit_code, 0);
  Run({"tenant", "set", "a", "--limit", "50%"});
  EXPECT_NE(Gmb({"tenant", "set", "a", "--undo", "--for", "1h"}).exit_code, 0);
  EXPECT_NE(
      Gmb({"tenant", "set", "a", "--limit", "5%", "--for", "0s"}).exit_code, 0);
}

TEST_F(OverrideTest, WhatIsExportedMakesTheSameTenants) {
  Run({"tenant",    "set",
       "a",         "--limit",
       "96MiB",     "--guarantee",
       "12.5%",     "--weight",
       "2.5",       "--uid",
       "1000,1001", "--pause-grace",
       "250ms",     "--min-residency",
       "90s",       "--may-terminate",
       "yes",       "--max-handles",
       "7",         "--host-limit",
       "1GiB"});
  Run({"tenant", "set", "b", "--limit", "32MiB", "--device", "host-0"});
  EXPECT_THAT(Run({"export"}), HasSubstr("\"host-0\": {limit: 32MiB}"))
      << "the rest is as on every device";
  Run({"tenant", "set", "b", "--guarantee", "16MiB", "--weight", "2",
       "--device", "host-0"});
  const std::string text = Run({"export"});
  EXPECT_THAT(text,
              AllOf(HasSubstr("limit: 96MiB"), Not(HasSubstr("weight: 1\n")),
                    HasSubstr("\"host-0\": {")));
  Stop();
  std::filesystem::remove_all(directory_ / "state");
  Write(text);
  Start();
  EXPECT_EQ(Run({"export"}), text);
}

TEST_F(OverrideTest, AStaleRevisionIsRefused) {
  const auto revision = [this] {
    const std::string text = Tenant();
    const size_t at = text.find("revision ");
    return at == std::string::npos
               ? ""
               : text.substr(at + 9, text.find('\n', at) - at - 9);
  };
  const std::string first = revision();
  Run({"tenant", "set", "a", "--limit", "50%", "--if-revision", first});
  const CommandResult stale =
      Gmb({"tenant", "set", "a", "--limit", "40%", "--if-revision", first});
  EXPECT_NE(stale.exit_code, 0);
  EXPECT_THAT(stale.output, HasSubstr("look again"));
  EXPECT_THAT(Tenant(), HasSubstr("50% ="));
  EXPECT_NE(Gmb({"tenant", "reset", "a", "--if-revision", first}).exit_code, 0);
  // A reset is a change as well.
  const std::string second = revision();
  Run({"tenant", "reset", "a", "--if-revision", second});
  const std::string third = revision();
  EXPECT_NE(third, second);
  // And so is a deletion.
  Run({"tenant", "delete", "b"});
  EXPECT_THAT(
      Gmb({"tenant", "set", "a", "--limit", "40%", "--if-revision", third})
          .output,
      HasSubstr("look again"));
  const std::string fourth = revision();
  Start();
  EXPECT_EQ(revision(), fourth) << "a start changes nothing";
}

TEST_F(OverrideTest, TheAuditLogIsOfATenantAndSinceATime) {
  Run({"tenant", "set", "a", "--limit", "50%"});
  Run({"tenant", "set", "b", "--limit", "40%"});
  EXPECT_THAT(Run({"audit", "--tenant", "a"}),
              AllOf(HasSubstr("a: limit 75% -> 50%"), Not(HasSubstr("40%"))));
  EXPECT_THAT(Run({"audit", "--since", "1h"}), HasSubstr("40%"));
  EXPECT_THAT(Run({"audit", "--tenant", "no"}), HasSubstr("no changes"));
}

}  // namespace
}  // namespace gmb
