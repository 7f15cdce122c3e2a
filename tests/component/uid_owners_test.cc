// A uid that two tenants declare: one of them has it in the real broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/component/reload_fixture.h"

namespace gmb {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class UidOwnersTest : public ReloadTest {
 protected:
  // Of z, by the file. Tenant a declares 1001 too, which a start has left out,
  // and then writes its uids anew, so that its write is the later one.
  void StartWithAUidOfTwo() {
    Write("tenants:\n- {name: z, uids: [1000]}\n");
    Start();
    Run({"tenant", "set", "a", "--uid", "1001"});
    Stop();
    Write("tenants:\n- {name: z, uids: [1000, 1001]}\n");
    Start();
    const CommandResult applied = Apply("{name: a, uids: [1001, 1002]}");
    ASSERT_EQ(applied.exit_code, 0) << applied.output;
    ExpectAllAsTheyWere();
  }
  void ExpectAllAsTheyWere() const {
    EXPECT_THAT(KnownBy("z"), HasSubstr("uid 1000, 1001"));
    EXPECT_THAT(KnownBy("a"), HasSubstr("uid 1002"));
  }
};

TEST_F(UidOwnersTest, AUidOfAnotherTenantIsRefusedAndAStartHasOneOwner) {
  Write("tenants:\n- {name: z, uids: [1000]}\n");
  Start();
  const CommandResult set =
      Gmb({"tenant", "set", "a", "--limit", "50%", "--uid", "1000"});
  EXPECT_EQ(set.exit_code, 1);
  EXPECT_THAT(set.output, HasSubstr("take it from tenant z first"));
  EXPECT_NE(Gmb({"tenant", "get", "a"}).exit_code, 0);
  const CommandResult applied = Apply("{name: a, uids: [1000]}");
  EXPECT_EQ(applied.exit_code, 1);
  EXPECT_THAT(applied.output, HasSubstr("take it from tenant z first"));
  Run({"tenant", "set", "a", "--uid", "1001"});
  EXPECT_THAT(
      Reload("tenants:\n- {name: z, uids: [1000, 1001]}\n", "reload_failed"),
      HasSubstr("take it from tenant a first"));
  // A start has to go on: the later write is the file's.
  Start();
  EXPECT_THAT(gmbd_->log(),
              HasSubstr("uid 1001 is declared by two tenants, and is z's"));
  EXPECT_THAT(Reload(), HasSubstr(" reloaded "));
  Run({"tenant", "set", "a", "--weight", "2"});
  EXPECT_THAT(KnownBy("a"), Not(HasSubstr("uid")));
  Run({"tenant", "set", "a", "--weight", "3", "--for", "1h"});
  Run({"tenant", "set", "a", "--undo"});
  EXPECT_THAT(KnownBy("a"), Not(HasSubstr("uid")));
  EXPECT_EQ(Gmb({"tenant", "set", "a", "--uid", "1001"}).exit_code, 1);
  // It is a's as soon as it is nobody else's.
  Reload("tenants:\n- {name: z, uids: [1000]}\n", "reloaded");
  EXPECT_THAT(KnownBy("a"), HasSubstr("uid 1001"));
}

// The limit that waits is put back from what is declared.
TEST_F(UidOwnersTest, AReloadThatKeepsALimitGivesBackNoUidOfAnother) {
  Write("tenants:\n- {name: a, limit: 75%}\n- {name: z}\n");
  Start();
  Run({"tenant", "set", "a", "--uid", "1000"});
  Stop();
  const std::string z = "- {name: z, uids: [1000]}\n";
  Write("tenants:\n- {name: a, limit: 75%}\n" + z);
  Start();
  EXPECT_THAT(KnownBy("z"), HasSubstr("uid 1000"));
  const auto client = Connect("a");
  const auto lease = client->Acquire(128 << 20);
  ASSERT_TRUE(lease.ok());
  EXPECT_THAT(
      Reload("tenants:\n- {name: a, limit: 25%}\n" + z, "reload_pending"),
      Not(HasSubstr("reload_failed")));
  EXPECT_THAT(KnownBy("a"), Not(HasSubstr("uid")));
  EXPECT_THAT(KnownBy("z"), HasSubstr("uid 1000"));
}

TEST_F(UidOwnersTest, AReloadTakesNoUidFromTheTenantThatHasIt) {
  StartWithAUidOfTwo();
  EXPECT_THAT(Reload(), HasSubstr("uid 1001 is declared by two tenants, and is "
                                  "z's, which has it"));
  ExpectAllAsTheyWere();
  // Nor does an edit of what the file gives to the other one.
  Start();
  EXPECT_THAT(KnownBy("a"), HasSubstr("uid 1001, 1002"));
  Reload("tenants:\n- {name: z, uids: [1000, 1001, 1003]}\n", "reloaded");
  EXPECT_THAT(KnownBy("a"), HasSubstr("uid 1001, 1002"));
  EXPECT_THAT(KnownBy("z"), HasSubstr("uid 1000, 1003"));
}

TEST_F(UidOwnersTest, TheEndOfAValueForATimeTakesNoUidFromItsTenant) {
  StartWithAUidOfTwo();
  Run({"tenant", "set", "z", "--weight", "3", "--for", "1s"});
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (Gmb({"audit"}).output.find("override_ended") == std::string::npos)
    ASSERT_LT(absl::Now(), end);
  // A change comes behind all that the end does.
  Run({"tenant", "set", "a", "--weight", "2"});
  ExpectAllAsTheyWere();
}

TEST_F(UidOwnersTest, AnApplyOfOtherValuesTakesNoUidFromItsTenant) {
  StartWithAUidOfTwo();
  const CommandResult applied =
      Apply("{name: z, uids: [1000, 1001], weight: 3}", {"--force"}, "other");
  EXPECT_EQ(applied.exit_code, 0) << applied.output;
  ExpectAllAsTheyWere();
}

}  // namespace
}  // namespace gmb
