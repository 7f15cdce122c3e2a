#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cli/error_report.h"
#include "client/cli/hold/filled_lease.h"
#include "gmb/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/real_broker.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HoldTest : public RealBroker {
 protected:
  static absl::Time Soon() { return absl::Now() + absl::Seconds(30); }
  void AwaitLeases(const std::string& tenant, size_t count) const {
    AwaitJson({"lease", "list", "--tenant", tenant}, [count](const Json& json) {
      return json["leases"].size() == count;
    });
  }
  // Throws, which fails the test, when it cannot.
  [[nodiscard]] std::unique_ptr<Client> ConnectAsA() const {
    ClientOptions options;
    options.socket_dir = broker_->socket_dir() + "/tenants/a";
    return std::move(Client::Connect(options)).value();
  }
};

TEST_F(HoldTest, ItLeasesFillsVerifiesAndReleasesEachLease) {
  const Said said = Gmb({"hold", "--tenant", "a", "--bytes", "4MiB", "--count",
                         "3", "--fill", "0xA5", "--for", "0s"});
  EXPECT_EQ(said.code, ExitCode::kOk) << said.err;
  EXPECT_THAT(said.out, HasSubstr("as tenant a"));
  EXPECT_THAT(said.out, HasSubstr("with byte 0xA5, checksum "));
  EXPECT_THAT(said.out, HasSubstr("verified"));
  AwaitLeases("a", 0);
}

TEST_F(HoldTest, ASizeThatIsRoundedUpIsSaid) {
  const Said said =
      Gmb({"hold", "--tenant", "a", "--bytes", "1", "--for", "0s"});
  EXPECT_EQ(said.code, ExitCode::kOk) << said.err;
  EXPECT_THAT(said.out, HasSubstr("2.00 MiB (rounded up from 1 B)"));
}

TEST_F(HoldTest, InJsonTheSizeThatWasAskedForAndTheSeedAreSaid) {
  const auto steps = [this](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"hold", "--tenant", "a",   "--bytes",
                                      "1",    "--count",  "2",   "--for",
                                      "0s",   "--output", "json"};
    words.insert(words.end(), more.begin(), more.end());
    const Said said = Gmb(words);
    EXPECT_EQ(said.code, ExitCode::kOk) << said.err;
    std::map<std::string, std::vector<Json>> by_name;
    for (const absl::string_view line :
         absl::StrSplit(said.out, '\n', absl::SkipEmpty())) {
      const Json step = Json::parse(std::string(line));
      by_name[step["step"]].push_back(step);
    }
    return by_name;
  };
  auto first = steps({});
  ASSERT_EQ(first["leased"].size(), 2U);
  EXPECT_EQ(first["leased"][0]["asked_bytes"], 1);
  EXPECT_EQ(first["leased"][0]["bytes"], 2 << 20);
  const uint64_t seed = first["filled"][0]["seed"].get<uint64_t>();
  EXPECT_EQ(first["filled"][1]["seed"], seed + 1);
  EXPECT_TRUE(first["filled"][0]["byte"].is_null());
  auto again = steps({"--seed", std::to_string(seed)});
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(again["filled"][i]["checksum"], first["filled"][i]["checksum"]);
  }
  auto byte = steps({"--fill", "0xA5"});
  EXPECT_EQ(byte["filled"][0]["byte"], 0xA5);
  EXPECT_TRUE(byte["filled"][0]["seed"].is_null());
}

TEST_F(HoldTest, AboveTheLimitItFailsWithTheReasonAndTheNextStep) {
  const Said said =
      Gmb({"hold", "--tenant", "a", "--bytes", "40MiB", "--for", "0s"});
  EXPECT_EQ(said.code, ExitCode::kFailed);
  EXPECT_THAT(said.err, HasSubstr("TENANT_LIMIT, 8.00 MiB too much"));
  EXPECT_THAT(said.err, HasSubstr("`gmb tenant set a --limit SIZE`"));
}

TEST_F(HoldTest, SizesOfZeroAndOfAllAddressesAreRefused) {
  EXPECT_EQ(Gmb({"hold", "--tenant", "a", "--bytes", "0"}).code,
            ExitCode::kFailed);
  EXPECT_EQ(
      Gmb({"hold", "--tenant", "a", "--bytes", "9223372036854775808"}).code,
      ExitCode::kFailed);
}

TEST_F(HoldTest, AStrangerIsNotTheTenantItNames) {
  EXPECT_EQ(Gmb({"hold", "--tenant", "nobody", "--bytes", "2MiB"}).code,
            ExitCode::kFailed);
  EXPECT_EQ(Gmb({"hold", "--tenant", "../admin", "--bytes", "2MiB"}).code,
            ExitCode::kFailed);
}

TEST_F(HoldTest, ASignalMakesItVerifyReleaseAndEndWell) {
  absl::StatusOr<ChildProcess> hold = Start(
      "hold", {"hold", "--tenant", "a", "--bytes", "4MiB", "--output", "json"});
  ASSERT_TRUE(hold.ok()) << hold.status();
  AwaitLeases("a", 1);
  EXPECT_THAT(Gmb({"session", "list"}).out, HasSubstr("gmb hold"));
  EXPECT_THAT(Gmb({"lease", "list"}).out, HasSubstr("4.00 MiB"));
  hold->Signal(SIGTERM);
  EXPECT_EQ(hold->Wait(Soon()).value(), "exit code 0") << LogOf("hold");
  EXPECT_THAT(LogOf("hold"), HasSubstr(R"("step":"released")"));
}

TEST_F(HoldTest, TheDeletionOfItsTenantMakesItEndWellAndIsSaid) {
  absl::StatusOr<ChildProcess> hold =
      Start("hold", {"hold", "--tenant", "a", "--bytes", "4MiB"});
  ASSERT_TRUE(hold.ok()) << hold.status();
  AwaitLeases("a", 1);
  const Said said = Gmb({"tenant", "delete", "a", "--wait", "30s"});
  EXPECT_EQ(said.code, ExitCode::kOk) << said.err;
  EXPECT_EQ(hold->Wait(Soon()).value(), "exit code 0") << LogOf("hold");
  EXPECT_THAT(LogOf("hold"), HasSubstr("or this tenant is being deleted"));
}

TEST_F(HoldTest, WhyNamesWhatAWaitingTenantWaitsForAndItIsServedInTheEnd) {
  absl::StatusOr<ChildProcess> holder =
      Start("holder", {"hold", "--tenant", "b", "--bytes", "40MiB"});
  ASSERT_TRUE(holder.ok()) << holder.status();
  AwaitLeases("b", 1);
  absl::StatusOr<ChildProcess> waiter =
      Start("waiter", {"hold", "--tenant", "a", "--bytes", "32MiB", "--wait",
                       "30s", "--for", "0s"});
  ASSERT_TRUE(waiter.ok()) << waiter.status();
  AwaitJson({"why", "a"},
            [](const Json& json) { return json["waiting"].size() == 1; });
  EXPECT_THAT(Gmb({"why", "a"}).out, HasSubstr("waiting session"));
  holder->Signal(SIGINT);
  EXPECT_EQ(waiter->Wait(Soon()).value(), "exit code 0") << LogOf("waiter");
  EXPECT_THAT(LogOf("waiter"), HasSubstr("waiting"));
  EXPECT_EQ(holder->Wait(Soon()).value(), "exit code 0") << LogOf("holder");
}

// It has not got what it was to hold.
TEST_F(HoldTest, ASignalWhileItWaitsEndsItWith1) {
  absl::StatusOr<ChildProcess> holder =
      Start("holder", {"hold", "--tenant", "b", "--bytes", "40MiB"});
  ASSERT_TRUE(holder.ok()) << holder.status();
  AwaitLeases("b", 1);
  absl::StatusOr<ChildProcess> waiter = Start(
      "waiter", {"hold", "--tenant", "a", "--bytes", "32MiB", "--wait", "10m"});
  ASSERT_TRUE(waiter.ok()) << waiter.status();
  AwaitJson({"why", "a"},
            [](const Json& json) { return json["waiting"].size() == 1; });
  waiter->Signal(SIGINT);
  EXPECT_EQ(waiter->Wait(Soon()).value(), "exit code 1") << LogOf("waiter");
  AwaitJson({"why", "a"},
            [](const Json& json) { return json["waiting"].empty(); });
  holder->Signal(SIGINT);
  EXPECT_EQ(holder->Wait(Soon()).value(), "exit code 0") << LogOf("holder");
}

TEST_F(HoldTest, ItHearsThatItsBudgetChanged) {
  absl::StatusOr<ChildProcess> hold =
      Start("hold", {"hold", "--tenant", "a", "--bytes", "4MiB"});
  ASSERT_TRUE(hold.ok()) << hold.status();
  AwaitLeases("a", 1);
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--limit", "30%"}).code, ExitCode::kOk);
  const absl::Time deadline = Soon();
  while (LogOf("hold").find("budget") == std::string::npos &&
         absl::Now() < deadline) {
  }
  EXPECT_THAT(LogOf("hold"), HasSubstr("limit 18.00 MiB"))
      << "30% of 64 MiB, in whole slabs or not";
}

TEST_F(HoldTest, WhenTheBrokerDiesTheContentsAreStillJudgedAndItSaysSo) {
  absl::StatusOr<ChildProcess> hold =
      Start("hold", {"hold", "--tenant", "a", "--bytes", "4MiB"});
  ASSERT_TRUE(hold.ok()) << hold.status();
  AwaitLeases("a", 1);
  broker_.reset();
  EXPECT_EQ(hold->Wait(Soon()).value(), "exit code 3") << LogOf("hold");
  EXPECT_THAT(LogOf("hold"), HasSubstr("verified"));
}

TEST_F(HoldTest, AByteThatIsNotWhatWasWrittenIsFound) {
  const auto client = ConnectAsA();
  absl::StatusOr<Lease> lease = client->Acquire(uint64_t{8} << 20);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_TRUE(CheckZero(*lease).ok());
  absl::StatusOr<FilledLease> filled =
      FilledLease::Fill(*std::move(lease), Pattern::Seeded(5));
  ASSERT_TRUE(filled.ok()) << filled.status();
  EXPECT_TRUE(filled->Verify().ok());
  static_cast<uint8_t*>(filled->lease().data())[5'000'001] ^= 1;
  const absl::Status wrong = filled->Verify();
  EXPECT_EQ(ExitCodeOf(wrong), ExitCode::kWrongContents);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("offset=5000001"));
  EXPECT_FALSE(CheckZero(filled->lease()).ok());
}

// Filling a whole GPU takes half a minute.
TEST_F(HoldTest, FillingEndsWhenItIsAskedToAndWhatWasWrittenIsKnown) {
  const auto client = ConnectAsA();
  absl::StatusOr<Lease> lease = client->Acquire(uint64_t{8} << 20);
  ASSERT_TRUE(lease.ok()) << lease.status();
  std::stop_source stop;
  stop.request_stop();
  const absl::StatusOr<FilledLease> filled = FilledLease::Fill(
      *std::move(lease), Pattern::Seeded(5), stop.get_token());
  ASSERT_TRUE(filled.ok()) << filled.status();
  EXPECT_EQ(filled->known_bytes(), 0);
  EXPECT_TRUE(CheckZero(filled->lease()).ok());
  EXPECT_TRUE(filled->Verify().ok());
}

// Where the first memory that a process shares with the broker is mapped; 0
// when there is none.
uint64_t SharedMemoryOf(pid_t pid) {
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    const bool shared_memory = line.find(" rw-s ") != std::string::npos &&
                               line.find("/memfd:") != std::string::npos;
    uint64_t start = 0;
    if (shared_memory &&
        absl::SimpleHexAtoi(line.substr(0, line.find('-')), &start))
      return start;
  }
  return 0;
}

TEST_F(HoldTest, MemoryThatSomebodyWroteToMakesItEndWith4) {
  for (const std::string form : {"table", "json"}) {
    SCOPED_TRACE(form);
    absl::StatusOr<ChildProcess> hold =
        Start(form, {"hold", "--tenant", "a", "--bytes", "4MiB", "--fill",
                     "0xA5", "--output", form});
    ASSERT_TRUE(hold.ok()) << hold.status();
    const absl::Time deadline = Soon();
    while (LogOf(form).find("holding") == std::string::npos &&
           absl::Now() < deadline) {
    }
    const uint64_t memory = SharedMemoryOf(hold->pid());
    ASSERT_NE(memory, 0U) << LogOf(form);
    const int fd = open(absl::StrCat("/proc/", hold->pid(), "/mem").c_str(),
                        O_WRONLY | O_CLOEXEC);
    if (fd < 0) GTEST_SKIP() << "no right to write to a child's memory here";
    const uint8_t wrong = 0xA4;
    ASSERT_EQ(pwrite(fd, &wrong, 1, static_cast<off_t>(memory + 12345)), 1);
    close(fd);
    hold->Signal(SIGINT);
    EXPECT_EQ(hold->Wait(Soon()).value(), "exit code 4") << LogOf(form);
    EXPECT_THAT(LogOf(form), HasSubstr("expected=0xA5 found=0xA4"));
    EXPECT_THAT(LogOf(form), HasSubstr("offset="));
  }
}

class TokenTest : public RealBroker {
 protected:
  void SetUp() override {
    ASSERT_TRUE(dir_.ok()) << dir_.status();
    WriteToken("token", "0123456789abcdef-of-a");
    WriteToken("other", "0123456789abcdef-of-none");
    RealBroker::SetUp();
  }
  void WriteToken(const std::string& name, const std::string& token) const {
    std::ofstream(Path(name)) << token << '\n';
    ASSERT_EQ(chmod(Path(name).c_str(), 0600), 0);
  }
  std::string Path(const std::string& name) const {
    return dir_->path() + "/" + name;
  }
  std::string Config() const override {
    return absl::StrCat("tenants:\n  - {name: a, limit: 50%, token_file: ",
                        Path("token"), "}\n  - {name: b, limit: 50%}\n");
  }
  Said Hold(const std::string& token, const std::string& tenant) const {
    std::vector<std::string> words = {
        "hold",     "--bytes", "2MiB", "--for", "0s", "--tenant-token-file",
        Path(token)};
    if (!tenant.empty()) words.insert(words.end(), {"--tenant", tenant});
    return Gmb(words);
  }
};

TEST_F(TokenTest, ATokenFileTellsTheTenantOnTheSharedSocket) {
  const Said said = Hold("token", "");
  EXPECT_EQ(said.code, ExitCode::kOk) << said.err;
  EXPECT_THAT(said.out, HasSubstr("as tenant a"));
  EXPECT_EQ(Hold("token", "a").code, ExitCode::kOk);
  EXPECT_EQ(Hold("token", "b").code, ExitCode::kFailed)
      << "the token says another tenant, whose directory has no say";
  const Said wrong = Hold("other", "a");
  EXPECT_EQ(wrong.code, ExitCode::kFailed);
  EXPECT_THAT(wrong.err, HasSubstr("NO_SUCH_TENANT"));
  for (const Said& each : {said, wrong}) {
    EXPECT_THAT(each.out + each.err, Not(HasSubstr("0123456789abcdef")));
  }
}

}  // namespace
}  // namespace gmb::cli
