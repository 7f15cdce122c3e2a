// The configuration file, read again by a real broker that serves processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/component/reload_fixture.h"

namespace gmb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ReloadTest, ChangedFieldsAreWrittenAndTheRestOfAnOperatorsStays) {
  Write("tenants:\n- {name: a, guarantee: 25%, limit: 75%, weight: 2}\n");
  Start();
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--limit", "50%", "--guarantee", "10%"})
                .exit_code,
            0);
  const std::string log = Reload(
      "tenants:\n- {name: a, guarantee: 25%, limit: 60%, weight: 2}\n"
      "- {name: b, limit: 30%}\n",
      "reloaded");
  EXPECT_THAT(log, HasSubstr("limit 50% -> 60%"));
  EXPECT_THAT(Tenant("a"), AllOf(HasSubstr("60% ="), HasSubstr("10% =")));
  EXPECT_THAT(Tenant("b"), HasSubstr("30% ="));
  EXPECT_NE(Connect("b"), nullptr);
  EXPECT_THAT(Gmb({"audit"}).output,
              AllOf(HasSubstr("apply_file"), HasSubstr("limit 50% -> 60%")));
  // It is stored: nothing is left to be done at a start, and nothing undone.
  Start();
  EXPECT_THAT(gmbd_->log(), Not(HasSubstr("file_applied")));
  EXPECT_THAT(Tenant("a"), AllOf(HasSubstr("60% ="), HasSubstr("10% =")));
}

TEST_F(ReloadTest, WithoutAChangeNothingIsWritten) {
  Write("tenants:\n- {name: a, limit: 75%}\n");
  Start();
  EXPECT_THAT(Reload(), HasSubstr("nothing changed"));
  EXPECT_THAT(Gmb({"audit"}).output, Not(HasSubstr("apply_file")));
}

TEST_F(ReloadTest, AFileWithAMistakeChangesNothingAndTheLineIsNamed) {
  Write("tenants:\n- {name: a, limit: 75%}\n");
  Start();
  EXPECT_THAT(Reload("tenants:\n- {name: a, limit: 50%}\n- {nam: b}\n",
                     "reload_failed"),
              AllOf(HasSubstr("gmb.yaml:3:"), HasSubstr("unknown key")));
  EXPECT_THAT(Reload("tenants:\n- {name: a, limit: 50%\n", "reload_failed"),
              HasSubstr("gmb.yaml:"));
  EXPECT_THAT(Tenant("a"), HasSubstr("75% ="));
  EXPECT_THAT(Tenant("b"), Not(HasSubstr("limit")));
  EXPECT_THAT(Doctor(), HasSubstr("not in force"));
  EXPECT_THAT(Reload("tenants:\n- {name: a, limit: 50%}\n", "reloaded"),
              HasSubstr("75% -> 50%"));
  EXPECT_THAT(Doctor(), Not(HasSubstr("not in force")));
}

TEST_F(ReloadTest, AnOvercommitIsRefusedAsAWhole) {
  Write("tenants:\n- {name: a, guarantee: 50%}\n");
  Start();
  EXPECT_THAT(
      Reload("tenants:\n- {name: a, guarantee: 50%, weight: 3}\n"
             "- {name: b, guarantee: 60%}\n",
             "reload_failed"),
      AllOf(HasSubstr("the guarantees of all tenants would exceed the "
                      "pool"),
            HasSubstr("gmb.yaml:3 (tenant b)"), Not(HasSubstr("(tenant a)"))));
  EXPECT_THAT(Gmb({"tenant", "get", "b"}).exit_code, Not(0));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run/tenants/b"));
  EXPECT_THAT(Tenant("a"), Not(HasSubstr("weight 3")));
  EXPECT_THAT(Gmb({"audit"}).output, Not(HasSubstr("apply_file")));
}

// In whatever order they are set, one alone would not fit.
TEST_F(ReloadTest, GuaranteesThatFitAloneTogetherAreTaken) {
  Write("tenants:\n- {name: a, guarantee: 70%}\n- {name: b, guarantee: 30%}\n");
  Start();
  Reload("tenants:\n- {name: a, guarantee: 20%}\n- {name: b, guarantee: 80%}\n",
         "reloaded");
  EXPECT_THAT(Tenant("a"), HasSubstr("20% ="));
  EXPECT_THAT(Tenant("b"), HasSubstr("80% ="));
  Reload("tenants:\n- {name: a, guarantee: 90%}\n- {name: b}\n", "reloaded");
  EXPECT_THAT(Tenant("a"), HasSubstr("90% ="));
}

TEST_F(ReloadTest, WhatNeedsARestartIsListed) {
  Write("max_sessions: 100\nreload_may_reclaim: 1MiB\n");
  Start();
  EXPECT_THAT(
      Reload("max_sessions: 200\nhost_pool: 2MiB\nreload_may_reclaim: 2MiB\n"
             "tenants:\n- {name: a}\n",
             "restart_needed"),
      AllOf(HasSubstr("max_sessions 100 -> 200"),
            HasSubstr("as needed -> 2MiB"),
            Not(HasSubstr("reload_may_reclaim"))));
  EXPECT_EQ(Gmb({"tenant", "get", "a"}).exit_code, 0);
  EXPECT_THAT(Doctor(), HasSubstr("max_sessions 100 -> 200"));
  // Another way to write the same.
  EXPECT_THAT(Reload("max_sessions: 100\ntenants:\n- {name: a}\n", "reloaded"),
              HasSubstr("nothing changed"));
  EXPECT_THAT(Doctor(), Not(HasSubstr("restart alone")));
}

TEST_F(ReloadTest, TokenFilesAreReadAgain) {
  const auto write = [this](const std::string& token) {
    std::ofstream(directory_ / "a.token") << token;
  };
  write("the first secret of a");
  Write("tenants:\n- {name: a, token_file: a.token}\n");
  Start();
  EXPECT_TRUE(ConnectWithToken("the first secret of a").ok());
  write("the second secret of a");
  const std::string log = Reload();
  EXPECT_THAT(
      log, AllOf(HasSubstr("a: another token"), Not(HasSubstr("secret of a"))));
  EXPECT_TRUE(ConnectWithToken("the second secret of a").ok());
  EXPECT_FALSE(ConnectWithToken("the first secret of a").ok());
  write("short");
  EXPECT_THAT(Reload("reload_failed"), HasSubstr("a token has 16 to 256"));
  EXPECT_TRUE(ConnectWithToken("the second secret of a").ok());
}

// As the kubelet does it: gmb.yaml -> ..data/gmb.yaml, and ..data is swapped.
TEST_F(ReloadTest, AWatchedFileBehindALinkThatIsSwappedIsReadByItself) {
  namespace fs = std::filesystem;
  const std::string file = "watch_config: true\ntenants:\n- {name: a, limit: ";
  for (const std::string limit : {"75%", "50%"}) {
    fs::create_directory(directory_ / ("..of" + limit));
    std::ofstream(directory_ / ("..of" + limit + "/gmb.yaml"))
        << file << limit << "}\n";
  }
  fs::create_symlink("..of75%", directory_ / "..data");
  fs::create_symlink("..data/gmb.yaml", directory_ / "gmb.yaml");
  Start();
  fs::create_symlink("..of50%", directory_ / "..data_tmp");
  fs::rename(directory_ / "..data_tmp", directory_ / "..data");
  EXPECT_TRUE(gmbd_->WaitForLog("limit 75% -> 50%")) << gmbd_->log();
}

TEST_F(ReloadTest, TokenFilesAreWatchedWhereverTheyAre) {
  std::filesystem::create_directory(directory_ / "secrets");
  Write("watch_config: true\ntenants:\n- {name: a}\n");
  Start();
  std::ofstream(directory_ / "secrets/a") << "the first secret of a";
  Write("watch_config: true\ntenants:\n- {name: a, token_file: secrets/a}\n");
  ASSERT_TRUE(gmbd_->WaitForLog("reloaded message=\"a: another token\""));
  std::ofstream(directory_ / "secrets/a") << "the second secret of a";
  const std::string again = "the second secret of a";
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (!ConnectWithToken(again).ok()) ASSERT_LT(absl::Now(), end);
}

TEST_F(ReloadTest, AHangupDuringTheStartIsARequestAsWell) {
  signal(SIGPIPE, SIG_IGN);
  const std::string file = directory_ / "gmb.yaml";
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  Launch();
  // Opens when the broker does, which then reads on until it is closed.
  std::ofstream pipe(file);
  gmbd_->Signal(SIGHUP);
  pipe << "tenants: []\n";
  pipe.close();
  EXPECT_THAT(LogUntil("reload_failed"), HasSubstr(" serving "));
}

TEST_F(ReloadTest, WhatIsNoFileIsNotReadAgain) {
  Start("/dev/null");
  EXPECT_THAT(Reload("reload_failed"), HasSubstr("not a regular file"));
}

TEST_F(ReloadTest, ASetWithoutAChangeIsNotWritten) {
  Write("tenants:\n- {name: a, limit: 75%}\n");
  Start();
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--limit", "75%"}).exit_code, 0);
  EXPECT_THAT(Gmb({"audit"}).output, Not(HasSubstr("set_tenant")));
  // The field is the file's still, and follows it.
  Reload("tenants:\n- {name: a, limit: 50%}\n", "reloaded");
  EXPECT_THAT(Tenant("a"), HasSubstr("50% ="));
}

}  // namespace
}  // namespace gmb
