// The real gmbd: how it starts, what keeps it from starting, and how it stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmb/client.h"
#include "gmb/v1/handle.pb.h"
#include "ipc/seqpacket.h"
#include "tests/broker/temp_directory.h"
#include "tests/component/gmbd_process.h"

namespace gmb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

class GmbdTest : public testing::Test {
 protected:
  std::string Sockets() const { return directory_ / "run"; }
  std::string Database() const { return directory_ / "state/gmb.db"; }

  std::vector<std::string> Arguments(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"--device",     device_,
                                    "--socket-dir", Sockets(),
                                    "--state-dir",  directory_ / "state",
                                    "--config",     directory_ / "gmb.yaml"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void Configure(const std::string& text) const {
    std::ofstream(directory_ / "gmb.yaml") << text;
  }

  std::unique_ptr<GmbdProcess> Start(std::vector<std::string> more = {}) const {
    auto gmbd = std::make_unique<GmbdProcess>(Arguments(std::move(more)));
    EXPECT_TRUE(gmbd->WaitForLog(" serving ")) << gmbd->log();
    return gmbd;
  }
  CommandResult Gmb(std::vector<std::string> words) const {
    words.insert(words.begin(), {"--socket-dir", Sockets()});
    return RunGmb(words);
  }
  absl::StatusOr<std::unique_ptr<Client>> TryConnect(
      const std::string& socket_dir, const std::string& token) const {
    ClientOptions options;
    options.socket_dir = socket_dir;
    options.tenant_token = token;
    return Client::Connect(options);
  }
  std::unique_ptr<Client> Connect() const {
    auto client = TryConnect(Sockets() + "/tenants/a", "");
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  void SetUp() override {
    Configure("tenants:\n  - {name: a, guarantee: 25%, limit: 75%}\n");
  }

  std::string device_ = "host:256MiB";
  const broker::TempDirectory directory_;
};

TEST_F(GmbdTest, ServesUntilSigtermAndLeavesNoSocketBehind) {
  const auto gmbd = Start();
  const CommandResult status = Gmb({"status"});
  EXPECT_EQ(status.exit_code, 0) << status.output;
  EXPECT_TRUE(Connect()->Acquire(4 * kMiB).ok());
  gmbd->Signal(SIGTERM);
  EXPECT_EQ(gmbd->WaitForExit(), 0) << gmbd->log();
  EXPECT_THAT(gmbd->log(), HasSubstr(" stopped"));
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(Sockets())) {
    EXPECT_FALSE(entry.is_socket()) << entry.path();
  }
}

// Anybody may send it, as often as they like.
TEST_F(GmbdTest, GreetingThatIsNotUtf8HasNoLinesOfProtobufsInTheLog) {
  const auto gmbd = Start();
  v1::ClientFrame hello;
  hello.mutable_hello()->set_program("\xff");
  auto socket = ipc::SeqpacketSocket::Connect(
      Sockets() + "/tenants/a/handle.sock", absl::Seconds(20));
  ASSERT_TRUE(socket.ok()) << socket.status();
  ASSERT_TRUE(socket
                  ->Send(hello.SerializeAsString(), {},
                         /*with_credentials=*/true, absl::Seconds(20))
                  .ok());
  absl::Status status;
  while (status.ok()) status = socket->Receive(absl::Seconds(20)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  gmbd->Signal(SIGTERM);
  EXPECT_EQ(gmbd->WaitForExit(), 0) << gmbd->log();
  EXPECT_THAT(gmbd->log(), Not(HasSubstr("libprotobuf")));
}

TEST_F(GmbdTest,
       ASecondOneOnTheSameSocketsOrStateIsRefusedAndToldWhoHoldsThem) {
  const auto first = Start();
  GmbdProcess second(Arguments());
  EXPECT_EQ(second.WaitForExit(), 1);
  EXPECT_THAT(second.log(),
              AllOf(HasSubstr(Sockets()),
                    HasSubstr("pid " + std::to_string(first->pid())),
                    HasSubstr("gmbd --device")));
  GmbdProcess third({"--device", device_, "--socket-dir", directory_ / "other",
                     "--state-dir", directory_ / "state"});
  EXPECT_EQ(third.WaitForExit(), 1);
  EXPECT_THAT(third.log(), HasSubstr("another broker uses this directory"));
  EXPECT_EQ(Gmb({"status"}).exit_code, 0);
}

TEST_F(GmbdTest, WhatAKilledOneLeftIsTakenOver) {
  const auto killed = Start();
  killed->Signal(SIGKILL);
  EXPECT_EQ(killed->WaitForExit(), 128 + SIGKILL);
  const auto next = Start();
  EXPECT_EQ(Gmb({"status"}).exit_code, 0);
  EXPECT_TRUE(Connect()->Acquire(4 * kMiB).ok());
}

TEST_F(GmbdTest, MistakesInFlagsAndFileExitWith2AndNameThePlace) {
  Configure("tenants:\n  - name: a\n    guarantee: 125%\n");
  GmbdProcess gmbd(Arguments({"--max-handles", "0"}));
  EXPECT_EQ(gmbd.WaitForExit(), 2);
  EXPECT_THAT(gmbd.log(),
              AllOf(HasSubstr("gmb.yaml:3:16: tenants[0].guarantee: "),
                    HasSubstr("--max-handles: ")));
  EXPECT_EQ(GmbdProcess({"--no-such-flag"}).WaitForExit(), 2);
  EXPECT_EQ(GmbdProcess({"--version"}).WaitForExit(), 0);
}

TEST_F(GmbdTest, CheckFindsWhatWouldKeepItFromStarting) {
  GmbdProcess good(Arguments({"--check"}));
  EXPECT_EQ(good.WaitForExit(), 0);
  EXPECT_THAT(good.log(), AllOf(HasSubstr("pool: host-0"),
                                HasSubstr("the broker would start")));
  Configure(
      "tenants:\n  - {name: a, guarantee: 60%}\n  - {name: b, guarantee: "
      "60%}\n");
  GmbdProcess bad(Arguments({"--check"}));
  EXPECT_EQ(bad.WaitForExit(), 1);
  EXPECT_THAT(bad.log(), HasSubstr("the guarantees are above the pool by"));
  GmbdProcess started(Arguments());
  EXPECT_EQ(started.WaitForExit(), 1);
  EXPECT_THAT(started.log(), HasSubstr("tenant b: "));
}

TEST_F(GmbdTest, ACheckThatCannotBeWrittenIsAnError) {
  std::string line = ProgramPath("gmbd");
  for (const std::string& argument : Arguments({"--check"}))
    absl::StrAppend(&line, " '", argument, "'");
  for (const auto& [output, code] :
       {std::pair("/dev/null", 0), std::pair("/dev/full", 1)}) {
    const int status =
        std::system(absl::StrCat(line, " >", output, " 2>&1").c_str());
    EXPECT_EQ(WEXITSTATUS(status), code) << output;
  }
}

TEST_F(GmbdTest, CheckSaysThatPoolAndHeadroomSayNothingAboutHostDevices) {
  GmbdProcess check(
      Arguments({"--check", "--pool", "50%", "--headroom", "64MiB"}));
  EXPECT_EQ(check.WaitForExit(), 0);
  EXPECT_THAT(check.log(),
              AllOf(HasSubstr("warning: pool and headroom are for GPUs"),
                    HasSubstr("256.0 MiB of 256.0 MiB free"),
                    HasSubstr("headroom 0 B")));
}

TEST_F(GmbdTest, ADefaultTenantThatIsNotThereIsSaidAndCanBeMadeLater) {
  GmbdProcess check(Arguments({"--check", "--default-tenant", "zz"}));
  EXPECT_EQ(check.WaitForExit(), 0);
  EXPECT_THAT(check.log(),
              AllOf(HasSubstr("warning: default_tenant: there is no tenant zz"),
                    HasSubstr("the broker would start")));
  {
    const auto gmbd = Start({"--default-tenant", "zz"});
    EXPECT_THAT(gmbd->log(),
                HasSubstr(" warning configuration message=\"default_tenant"));
    EXPECT_FALSE(TryConnect(Sockets(), "").ok());
    EXPECT_EQ(Gmb({"tenant", "set", "zz"}).exit_code, 0);
    EXPECT_TRUE(TryConnect(Sockets(), "").ok());
    gmbd->Signal(SIGTERM);
    EXPECT_EQ(gmbd->WaitForExit(), 0);
  }
  const auto gmbd = Start({"--default-tenant", "zz"});
  EXPECT_THAT(gmbd->log(), Not(HasSubstr("default_tenant")));
}

TEST_F(GmbdTest, SigtermWaitsForTheLastSessionAndGrantsNothingMeanwhile) {
  const auto gmbd = Start();
  auto client = Connect();
  auto lease = client->Acquire(4 * kMiB);
  ASSERT_TRUE(lease.ok());
  gmbd->Signal(SIGTERM);
  ASSERT_TRUE(gmbd->WaitForLog(" draining "));
  EXPECT_EQ(client->Acquire(4 * kMiB).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE((*std::move(lease)).Release().ok());
  client.reset();
  EXPECT_EQ(gmbd->WaitForExit(), 0);
  EXPECT_THAT(gmbd->log(), Not(HasSubstr("drain_deadline")));
}

TEST_F(GmbdTest, TheDrainDeadlineEndsTheSessionsThatAreLeft) {
  const auto gmbd = Start({"--drain-deadline", "100ms"});
  const auto client = Connect();
  auto lease = client->Acquire(4 * kMiB);
  ASSERT_TRUE(lease.ok());
  gmbd->Signal(SIGTERM);
  EXPECT_EQ(gmbd->WaitForExit(), 0);
  EXPECT_THAT(gmbd->log(), HasSubstr("drain_deadline"));
  EXPECT_EQ(client->GetQuota().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(GmbdTest, ASecondSignalStopsAtOnce) {
  const auto gmbd = Start({"--drain-deadline", "1h"});
  const auto client = Connect();
  gmbd->Signal(SIGINT);
  ASSERT_TRUE(gmbd->WaitForLog(" draining "));
  gmbd->Signal(SIGTERM);
  EXPECT_EQ(gmbd->WaitForExit(), 3);
  EXPECT_THAT(gmbd->log(), HasSubstr("stopping_at_once"));
}

TEST_F(GmbdTest, OperatorsChangesOutliveSigkillAndWinOverTheFile) {
  {
    const auto gmbd = Start();
    EXPECT_EQ(Gmb({"tenant", "set", "a", "--limit", "50%"}).exit_code, 0);
    EXPECT_EQ(Gmb({"tenant", "set", "b", "--guarantee", "10%"}).exit_code, 0);
    gmbd->Signal(SIGKILL);
    EXPECT_EQ(gmbd->WaitForExit(), 128 + SIGKILL);
  }
  const auto gmbd = Start();
  EXPECT_THAT(gmbd->log(), HasSubstr("stored_quota_wins tenant=a"));
  EXPECT_THAT(Gmb({"tenant", "get", "a"}).output, HasSubstr("50% ="));
  EXPECT_THAT(Gmb({"tenant", "get", "b"}).output, HasSubstr("10% ="));
}

TEST_F(GmbdTest, ATenantThatAnOperatorDeletedStaysDeletedThoughTheFileNamesIt) {
  {
    const auto gmbd = Start();
    EXPECT_EQ(Gmb({"tenant", "delete", "a"}).exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(Sockets() + "/tenants/a"));
    gmbd->Signal(SIGTERM);
    EXPECT_EQ(gmbd->WaitForExit(), 0);
  }
  const auto gmbd = Start();
  EXPECT_THAT(gmbd->log(), HasSubstr("tenant_stays_deleted tenant=a"));
  EXPECT_NE(Gmb({"tenant", "get", "a"}).exit_code, 0);
  EXPECT_EQ(Gmb({"tenant", "set", "a", "--limit", "50%"}).exit_code, 0);
  EXPECT_NE(Connect(), nullptr);
}

TEST_F(GmbdTest,
       AGuaranteeOfAnOperatorThatNoLongerFitsDoesNotKeepItFromStarting) {
  {
    const auto gmbd = Start();
    EXPECT_EQ(Gmb({"tenant", "set", "b", "--guarantee", "150MiB", "--limit",
                   "180MiB"})
                  .exit_code,
              0);
    gmbd->Signal(SIGTERM);
    EXPECT_EQ(gmbd->WaitForExit(), 0);
  }
  device_ = "host:128MiB";
  const auto gmbd = Start();
  EXPECT_THAT(gmbd->log(), HasSubstr("stored_guarantee_does_not_fit tenant=b"));
  // Until somebody settles it.
  EXPECT_THAT(Gmb({"doctor", "--output", "json"}).output,
              HasSubstr("tenant b is not as an operator set it: its guarantee "
                        "of 150.0 MiB does not fit any more"));
  EXPECT_EQ(
      Gmb({"tenant", "set", "b", "--guarantee", "10MiB", "--limit", "20MiB"})
          .exit_code,
      0);
  EXPECT_THAT(Gmb({"doctor", "--output", "json"}).output,
              Not(HasSubstr("is not as an operator set it")));
}

TEST_F(GmbdTest, AGuaranteeThatDidNotFitAtTheStartIsInForceWhenItDoes) {
  const auto set = [&](const std::string& tenant) {
    return Gmb({"tenant", "set", tenant, "--guarantee", "80MiB"}).exit_code;
  };
  {
    const auto gmbd = Start();
    EXPECT_EQ(set("b"), 0);
    EXPECT_EQ(set("c"), 0);
    gmbd->Signal(SIGTERM);
    EXPECT_EQ(gmbd->WaitForExit(), 0);
  }
  device_ = "host:128MiB";
  const auto gmbd = Start();
  EXPECT_THAT(gmbd->log(), HasSubstr("stored_guarantee_does_not_fit tenant=c"));
  EXPECT_THAT(gmbd->log(), Not(HasSubstr("does_not_fit tenant=b")));
  // Nothing that leaves it no room.
  EXPECT_EQ(Gmb({"tenant", "set", "b", "--weight", "2"}).exit_code, 0);
  EXPECT_THAT(Gmb({"doctor", "--output", "json"}).output,
              HasSubstr("tenant c is not as an operator set it"));
  EXPECT_EQ(Gmb({"tenant", "delete", "b"}).exit_code, 0);
  ASSERT_TRUE(gmbd->WaitForLog("stored_guarantee_fits tenant=c"))
      << gmbd->log();
  EXPECT_THAT(Gmb({"tenant", "get", "c"}).output,
              HasSubstr("host-0  80.00 MiB"));
  EXPECT_THAT(Gmb({"doctor", "--output", "json"}).output,
              Not(HasSubstr("is not as an operator set it")));
}

// A host device is as large as its pool: another one is another size in the
// file, which wins.
TEST_F(GmbdTest, APoolSizeOfAnOperatorEndsWithAnotherOneInTheFile) {
  {
    const auto gmbd = Start();
    EXPECT_EQ(Gmb({"pool", "resize", "200MiB"}).exit_code, 0);
    gmbd->Signal(SIGTERM);
    EXPECT_EQ(gmbd->WaitForExit(), 0);
  }
  {
    const auto gmbd = Start();
    EXPECT_THAT(Gmb({"doctor", "--output", "json"}).output,
                HasSubstr("pool of 200.0 MiB"));
    gmbd->Signal(SIGTERM);
    EXPECT_EQ(gmbd->WaitForExit(), 0);
  }
  device_ = "host:128MiB";
  const auto gmbd = Start();
  EXPECT_THAT(Gmb({"doctor", "--output", "json"}).output,
              HasSubstr("pool of 128.0 MiB"));
  EXPECT_EQ(Gmb({"pool", "resize", "65MiB"}).exit_code, 0);
  gmbd->Signal(SIGTERM);
  EXPECT_EQ(gmbd->WaitForExit(), 0);
  // It is 64 MiB: a part of a granule is not missed.
  const auto again = Start();
  EXPECT_THAT(Gmb({"doctor", "--output", "json"}).output,
              Not(HasSubstr("the size that an operator")));
}

TEST_F(GmbdTest, ARefusedSessionIsInTheLog) {
  const auto gmbd = Start();
  EXPECT_FALSE(TryConnect(Sockets(), "a-token-of-nobody").ok());
  EXPECT_TRUE(gmbd->WaitForLog(" warning session_refused "));
  EXPECT_THAT(gmbd->log(), AllOf(HasSubstr("NO_SUCH_TENANT"),
                                 Not(HasSubstr("a-token-of-nobody"))));
}

TEST_F(GmbdTest, ADamagedDatabaseIsRefusedAndKeptAsideOnRequest) {
  {
    const auto gmbd = Start();
    EXPECT_EQ(Gmb({"tenant", "set", "b", "--limit", "50%"}).exit_code, 0);
    gmbd->Signal(SIGTERM);
    EXPECT_EQ(gmbd->WaitForExit(), 0);
  }
  std::string bytes = ReadFile(Database());
  for (size_t i = 100; i < bytes.size(); i += 3) bytes[i] = '\x5a';
  std::ofstream(Database(), std::ios::binary) << bytes;

  GmbdProcess refused(Arguments());
  EXPECT_EQ(refused.WaitForExit(), 1);
  EXPECT_THAT(refused.log(),
              AllOf(HasSubstr(Database()), HasSubstr("--fresh-state")));
  EXPECT_EQ(ReadFile(Database()), bytes);

  const auto fresh = Start({"--fresh-state"});
  EXPECT_THAT(fresh->log(), HasSubstr("state_set_aside"));
  bool kept = false;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory_ / "state")) {
    kept |= entry.path().string().find(".corrupt-") != std::string::npos &&
            ReadFile(entry.path()) == bytes;
  }
  EXPECT_TRUE(kept);
}

TEST_F(GmbdTest, AStateDirectoryThatCannotBeWrittenIsSaid) {
  std::ofstream(directory_ / "state") << "a file in its place";
  GmbdProcess gmbd(Arguments());
  EXPECT_EQ(gmbd.WaitForExit(), 1);
  EXPECT_THAT(gmbd.log(), HasSubstr(directory_ / "state"));
}

TEST_F(GmbdTest, ALowLimitOnOpenFilesIsSaidAndServed) {
  GmbdProcess gmbd(Arguments(), /*fd_limit=*/512);
  ASSERT_TRUE(gmbd.WaitForLog(" serving ")) << gmbd.log();
  EXPECT_THAT(gmbd.log(),
              AllOf(HasSubstr("few_files"), HasSubstr("LimitNOFILE")));
  EXPECT_THAT(Gmb({"doctor"}).output,
              AllOf(HasSubstr("open files"),
                    // No more than the pool has slabs for.
                    Not(HasSubstr(" of 32768 handles")),
                    HasSubstr(" of 1024 sessions"), HasSubstr("LimitNOFILE")));
  EXPECT_TRUE(Connect()->Acquire(4 * kMiB).ok());
}

TEST_F(GmbdTest, CheckSaysThatTheLimitOnOpenFilesIsLow) {
  GmbdProcess few(Arguments({"--check"}), /*fd_limit=*/512);
  EXPECT_EQ(few.WaitForExit(), 0);
  EXPECT_THAT(
      few.log(),
      AllOf(HasSubstr("warning: the limit on open files is too low"),
            HasSubstr("LimitNOFILE"), HasSubstr("the broker would start")));
  GmbdProcess enough(
      Arguments({"--check", "--max-handles", "16", "--max-sessions", "4"}));
  EXPECT_EQ(enough.WaitForExit(), 0);
  EXPECT_THAT(enough.log(), Not(HasSubstr("open files")));
}

TEST_F(GmbdTest, TokensAreNeverLogged) {
  const std::string secret = "never-to-be-seen-in-a-log";
  std::ofstream(directory_ / "token") << secret;
  Configure(
      "log_level: debug\nlog_format: json\ntenants:\n  - {name: a, token_file: "
      "token}\n");
  GmbdProcess gmbd(Arguments());
  ASSERT_TRUE(gmbd.WaitForLog("\"event\":\"serving\"")) << gmbd.log();
  EXPECT_TRUE(TryConnect(Sockets(), secret).ok());
  EXPECT_FALSE(TryConnect(Sockets(), secret + "!").ok());
  gmbd.Signal(SIGTERM);
  EXPECT_EQ(gmbd.WaitForExit(), 0);
  EXPECT_THAT(gmbd.log(), Not(HasSubstr(secret)));
}

}  // namespace
}  // namespace gmb
