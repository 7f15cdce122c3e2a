// The values of the configuration file, operators and an earlier start, over
// restarts of the real broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "broker/store/database.h"
#include "tests/component/filed_broker.h"

namespace gmb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DeclaredTest : public FiledBrokerTest {
 protected:
  std::string Tenant(const std::string& name) const {
    return Gmb({"tenant", "get", name}).output;
  }
};

TEST_F(DeclaredTest, AChangedFieldOfTheFileWinsAndTheRestOfAnOperatorsStays) {
  Write("tenants:\n- {name: a, guarantee: 25%, limit: 75%}\n");
  Start();
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--limit", "50%", "--guarantee", "10%"})
                .exit_code,
            0);
  Start();
  EXPECT_THAT(Tenant("a"), AllOf(HasSubstr("50% ="), HasSubstr("10% =")));
  Write("tenants:\n- {name: a, guarantee: 25%, limit: 60%}\n");
  Start();
  EXPECT_THAT(Tenant("a"), AllOf(HasSubstr("60% ="), HasSubstr("10% =")));
  EXPECT_THAT(gmbd_->log(), HasSubstr("file_applied"));
  EXPECT_THAT(Gmb({"audit"}).output, HasSubstr("limit 50% -> 60%"));
}

TEST_F(DeclaredTest, TheFilesTenantsGoWithItAndThoseOfOperatorsStay) {
  Write("tenants:\n- {name: a}\n- {name: b}\n");
  Start();
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--limit", "50%"}).exit_code, 0);
  ASSERT_EQ(Gmb({"tenant", "set", "mine", "--limit", "50%"}).exit_code, 0);
  Write("tenants:\n- {name: b}\n");
  Start();
  EXPECT_THAT(Gmb({"tenant", "get", "a"}).exit_code, Not(0));
  EXPECT_THAT(Tenant("mine"), HasSubstr("50% ="));
}

TEST_F(DeclaredTest,
       AFilesGuaranteeAboveAnOperatorsLimitIsRefusedAndBothNamed) {
  Write("tenants:\n- {name: a}\n");
  Start();
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--limit", "50%"}).exit_code, 0);
  Stop();
  Write("tenants:\n- {name: a, guarantee: 60%}\n");
  GmbdProcess refused(Arguments());
  EXPECT_EQ(refused.WaitForExit(), 1);
  EXPECT_THAT(refused.log(), AllOf(HasSubstr("guarantee=60% is of the file"),
                                   HasSubstr("limit=50% is of operator uid ")));
  // Nothing of it was taken over.
  Write("tenants:\n- {name: a, guarantee: 40%}\n");
  Start();
  EXPECT_THAT(Tenant("a"), HasSubstr("50% ="));
  EXPECT_THAT(Gmb({"tenant", "set", "a", "--limit", "30%"}).output,
              AllOf(HasSubstr("guarantee=40% is of the file"),
                    HasSubstr("limit=30% is of operator uid ")));
}

TEST_F(DeclaredTest, AnUndoGivesBackTheFormerValuesAfterAnyEndOfTheBroker) {
  Write("tenants:\n- {name: a, limit: 75%}\n- {name: b, limit: 75%}\n");
  Start();
  Run({"tenant", "set", "a", "--limit", "50%", "--weight", "3"});
  gmbd_->Signal(SIGKILL);
  ASSERT_EQ(gmbd_->WaitForExit(), 128 + SIGKILL);
  gmbd_ = nullptr;
  Start();
  EXPECT_THAT(Run({"tenant", "set", "a", "--undo"}), HasSubstr("75% ="));
  Start();
  EXPECT_THAT(Run({"tenant", "set", "a", "--undo"}), HasSubstr("50% ="));
  EXPECT_THAT(Run({"audit"}), HasSubstr("limit 75% -> 50%, weight 1 -> 3"));
  // The file's change is undone as an operator's, and what nobody changed is
  // not.
  Write("tenants:\n- {name: a, limit: 60%}\n- {name: b, limit: 75%}\n");
  Start();
  EXPECT_THAT(Tenant("a"), HasSubstr("60% ="));
  EXPECT_THAT(Run({"tenant", "set", "a", "--undo"}), HasSubstr("50% ="));
  const CommandResult nothing = Gmb({"tenant", "set", "b", "--undo"});
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_THAT(nothing.output, HasSubstr("nothing to undo"));
}

// Taken by SQLite, as docs/operations.md says.
TEST_F(DeclaredTest, ABackupTakenWhileItRunsCanBePutBack) {
  Write("tenants:\n- {name: a, limit: 75%}\n");
  Start();
  Run({"tenant", "set", "a", "--limit", "50%"});
  const std::string copy = directory_ / "copy.db";
  {
    auto database = broker::Database::Open(directory_ / "state/gmb.db");
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status taken =
        database->Execute(("VACUUM INTO '" + copy + "'").c_str());
    ASSERT_TRUE(taken.ok()) << taken;
  }
  Run({"tenant", "set", "a", "--limit", "25%"});
  Stop();
  std::filesystem::rename(copy, directory_ / "state/gmb.db");
  Start();
  EXPECT_THAT(Tenant("a"), HasSubstr("50% ="));
  EXPECT_THAT(Run({"audit"}),
              AllOf(HasSubstr("75% -> 50%"), Not(HasSubstr("50% -> 25%"))));
  EXPECT_THAT(Run({"tenant", "set", "a", "--undo"}), HasSubstr("75% ="));
}

TEST_F(DeclaredTest, APoolIsAsAnOperatorResizedItUntilItsDeviceChanges) {
  Write("");
  Start();
  ASSERT_EQ(Gmb({"pool", "resize", "128MiB"}).exit_code, 0);
  Start();
  EXPECT_THAT(Gmb({"status"}).output, HasSubstr("128.00 MiB"));
  device_ = "host:192MiB";
  Start();
  EXPECT_THAT(Gmb({"status"}).output, HasSubstr("192.00 MiB"));
}

}  // namespace
}  // namespace gmb
