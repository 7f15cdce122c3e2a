// The configuration file, read again by a real broker that serves processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmb/client.h"
#include "tests/broker/temp_directory.h"
#include "tests/component/gmbd_process.h"

namespace gmb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class ReloadTest : public testing::Test {
 protected:
  void Write(const std::string& text) const {
    std::ofstream(directory_ / "gmb.yaml") << text;
  }
  void Start(const std::string& file = "") {
    Stop();
    gmbd_ = std::make_unique<GmbdProcess>(std::vector<std::string>{
        "--device", "host:256MiB", "--socket-dir", directory_ / "run",
        "--state-dir", directory_ / "state", "--config",
        file.empty() ? directory_ / "gmb.yaml" : file});
    seen_ = 0;
    ASSERT_TRUE(gmbd_->WaitForLog(" serving ")) << gmbd_->log();
  }
  void Stop() {
    if (gmbd_ == nullptr) return;
    gmbd_->Signal(SIGTERM);
    EXPECT_EQ(gmbd_->WaitForExit(), 0) << gmbd_->log();
    gmbd_ = nullptr;
  }
  void TearDown() override { Stop(); }

  // What the broker logs from here on, until it has logged `event`.
  std::string LogUntil(const std::string& event) {
    // WaitForLog finds what was logged before, so each is counted.
    const std::string word = " " + event + " ";
    const size_t from = seen_;
    while (gmbd_->log().find(word, from) == std::string::npos) {
      if (!gmbd_->ReadMore()) {
        ADD_FAILURE() << "no " << event << ": " << gmbd_->log().substr(from);
        return "";
      }
    }
    const size_t found = gmbd_->log().find(word, from);
    while (gmbd_->log().find('\n', found) == std::string::npos) {
      if (!gmbd_->ReadMore()) break;
    }
    const size_t end = gmbd_->log().find('\n', found);
    seen_ = end == std::string::npos ? gmbd_->log().size() : end + 1;
    return gmbd_->log().substr(from, seen_ - from);
  }
  std::string Reload(const std::string& event = "reloaded") {
    gmbd_->Signal(SIGHUP);
    return LogUntil(event);
  }
  std::string Reload(const std::string& text, const std::string& event) {
    Write(text);
    return Reload(event);
  }

  CommandResult Gmb(std::vector<std::string> words) const {
    words.insert(words.begin(), {"--socket-dir", directory_ / "run"});
    return RunGmb(words);
  }
  // Not as a table, which breaks lines.
  std::string Doctor() const {
    return Gmb({"doctor", "--output", "json"}).output;
  }
  std::string Tenant(const std::string& name) const {
    return Gmb({"tenant", "get", name}).output;
  }
  std::unique_ptr<Client> Connect(const std::string& tenant) const {
    ClientOptions options;
    options.socket_dir = directory_ / ("run/tenants/" + tenant);
    auto client = Client::Connect(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  absl::Status ConnectWithToken(const std::string& token) const {
    ClientOptions options;
    options.socket_dir = directory_ / "run";
    options.tenant_token = token;
    return Client::Connect(options).status();
  }

  const broker::TempDirectory directory_;
  std::unique_ptr<GmbdProcess> gmbd_;
  size_t seen_ = 0;
};

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
  EXPECT_THAT(Reload("tenants:\n- {name: a, guarantee: 50%, weight: 3}\n"
                     "- {name: b, guarantee: 60%}\n",
                     "reload_failed"),
              HasSubstr("the guarantees of all tenants would exceed the pool"));
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
            HasSubstr("host_pool 0 -> 2MiB"),
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

TEST_F(ReloadTest, ALimitBelowWhatIsHeldWaitsUntilItTakesNothing) {
  Write("tenants:\n- {name: a, limit: 75%, weight: 1}\n");
  Start();
  const auto client = Connect("a");
  auto lease = client->Acquire(128 * kMiB);
  ASSERT_TRUE(lease.ok());
  const std::string log = Reload(
      "tenants:\n- {name: a, limit: 25%, weight: 2}\n", "reload_pending");
  EXPECT_THAT(
      log, AllOf(HasSubstr("weight 1 -> 2"), Not(HasSubstr("limit 75% -> 25%")),
                 HasSubstr("bytes=67108864")));
  EXPECT_THAT(Tenant("a"), HasSubstr("75% ="));
  EXPECT_THAT(Doctor(), HasSubstr("reload_may_reclaim"));
  // At the next one, too.
  Reload("reload_pending");
  ASSERT_TRUE(std::move(*lease).Release().ok());
  EXPECT_THAT(LogUntil("reloaded"), HasSubstr("limit 75% -> 25%"));
  EXPECT_THAT(Tenant("a"), HasSubstr("25% ="));
  EXPECT_THAT(Doctor(), Not(HasSubstr("reload_may_reclaim")));
}

TEST_F(ReloadTest, WithinReloadMayReclaimItIsTaken) {
  Write("tenants:\n- {name: a, limit: 75%}\n- {name: b, limit: 75%}\n");
  Start();
  const auto a = Connect("a");
  const auto b = Connect("b");
  const auto of_a = a->Acquire(96 * kMiB);
  const auto of_b = b->Acquire(128 * kMiB);
  ASSERT_TRUE(of_a.ok() && of_b.ok());
  // 32 MiB of a and 64 MiB of b.
  const std::string log = Reload(
      "reload_may_reclaim: 70MiB\n"
      "tenants:\n- {name: a, limit: 25%}\n- {name: b, limit: 25%}\n",
      "reload_pending");
  EXPECT_THAT(log, AllOf(HasSubstr("a: limit 75% -> 25%"),
                         HasSubstr("reload_pending tenant=b")));
  EXPECT_THAT(Tenant("a"), HasSubstr("25% ="));
  EXPECT_THAT(Tenant("b"), HasSubstr("75% ="));
  EXPECT_FALSE(a->Acquire(2 * kMiB).ok());
  EXPECT_THAT(Reload("reload_may_reclaim: 64MiB\n"
                     "tenants:\n- {name: a, limit: 25%}\n"
                     "- {name: b, limit: 25%}\n",
                     "reloaded"),
              HasSubstr("b: limit 75% -> 25%"));
}

TEST_F(ReloadTest, AnOperatorWhoWritesLaterThanThePendingFileWins) {
  Write("tenants:\n- {name: a, limit: 75%}\n");
  Start();
  auto client = Connect("a");
  auto lease = client->Acquire(128 * kMiB);
  ASSERT_TRUE(lease.ok());
  const std::string file = "tenants:\n- {name: a, limit: 25%}\n";
  Reload(file, "reload_pending");
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--limit", "60%"}).exit_code, 0);
  ASSERT_TRUE(std::move(*lease).Release().ok());
  Reload();
  EXPECT_THAT(Tenant("a"), HasSubstr("60% ="));
  client = nullptr;
  Start();
  EXPECT_THAT(Tenant("a"), HasSubstr("60% ="));
}

TEST_F(ReloadTest, ATenantOutOfTheFileDrainsAndIsDeleted) {
  Write("tenants:\n- {name: a, guarantee: 60%}\n- {name: b}\n");
  Start();
  ASSERT_EQ(Gmb({"tenant", "set", "mine", "--limit", "50%"}).exit_code, 0);
  auto client = Connect("a");
  EXPECT_THAT(
      Reload("tenants:\n- {name: b, guarantee: 60%}\n", "tenant_leaving"),
      HasSubstr("tenant a leaves"));
  EXPECT_THAT(Tenant("b"), HasSubstr("60% ="));
  EXPECT_EQ(Gmb({"tenant", "get", "a"}).exit_code, 0);
  EXPECT_FALSE(client->Acquire(2 * kMiB).ok());
  client = nullptr;
  LogUntil("tenant_deleted");
  // The sockets are gone before that is said.
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run/tenants/a"));
  EXPECT_THAT(Gmb({"tenant", "get", "a"}).exit_code, Not(0));
  EXPECT_EQ(Gmb({"tenant", "get", "mine"}).exit_code, 0);
  EXPECT_THAT(Gmb({"audit"}).output, HasSubstr("delete_tenant"));
}

TEST_F(ReloadTest, ATenantOutOfTheFileThatHoldsMemoryStaysUntilItHoldsNone) {
  Write("tenants:\n- {name: a, guarantee: 60%}\n");
  Start();
  const auto client = Connect("a");
  auto lease = client->Acquire(64 * kMiB);
  ASSERT_TRUE(lease.ok());
  EXPECT_THAT(Reload("tenants: []\n", "reload_pending"),
              HasSubstr("tenant a, which the file does not name any more"));
  EXPECT_TRUE(client->Acquire(2 * kMiB).ok()) << "it is served as before";
  EXPECT_THAT(
      Reload("tenants:\n- {name: b, guarantee: 60%}\n", "reload_failed"),
      HasSubstr("would exceed"));
  ASSERT_TRUE(std::move(*lease).Release().ok());
  LogUntil("tenant_leaving");
}

// It may not be killed, and its process does not end when it is asked to.
TEST_F(ReloadTest, ATenantThatOverstaysIsTriedAgainAndGoesWithItsLastProcess) {
  Write("drain_deadline: 100ms\ntenants:\n- {name: a}\n");
  Start();
  auto client = Connect("a");
  const std::string without = "drain_deadline: 100ms\ntenants: []\n";
  EXPECT_THAT(Reload(without, "reload_pending"), HasSubstr("tenant_stays"));
  EXPECT_THAT(Reload("reload_pending"),
              AllOf(HasSubstr("tenant a leaves"), HasSubstr("tenant_stays")));
  client = nullptr;
  LogUntil("tenant_deleted");
  EXPECT_NE(Gmb({"tenant", "get", "a"}).exit_code, 0);
}

TEST_F(ReloadTest, ATenantThatIsPutBackIntoTheFileStays) {
  const std::string file = "tenants:\n- {name: a, guarantee: 60%}\n";
  Write(file);
  Start();
  auto client = Connect("a");
  Reload("tenants: []\n", "tenant_leaving");
  Reload(file, "reloaded");
  EXPECT_THAT(Tenant("a"), HasSubstr("60% ="));
  EXPECT_TRUE(Connect("a")->Acquire(2 * kMiB).ok());
  client = nullptr;
  EXPECT_TRUE(Connect("a")->Acquire(2 * kMiB).ok());
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
  EXPECT_THAT(LogUntil("reloaded"), HasSubstr("limit 75% -> 50%"));
}

TEST_F(ReloadTest, TokenFilesAreWatchedWhereverTheyAre) {
  std::filesystem::create_directory(directory_ / "secrets");
  Write("watch_config: true\ntenants:\n- {name: a}\n");
  Start();
  std::ofstream(directory_ / "secrets/a") << "the first secret of a";
  Write("watch_config: true\ntenants:\n- {name: a, token_file: secrets/a}\n");
  LogUntil("reloaded");
  std::ofstream(directory_ / "secrets/a") << "the second secret of a";
  EXPECT_THAT(LogUntil("reloaded"), HasSubstr("a: another token"));
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
