// The habits of an operator: looking, waiting, hanging up, a bundle.
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/real_broker.h"

namespace gmb::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class OperateTest : public RealBroker {
 protected:
  // A process of tenant a that holds 4 MiB, and its session.
  absl::StatusOr<ChildProcess> Hold(uint64_t* session) {
    absl::StatusOr<ChildProcess> hold =
        Start("hold", {"hold", "--tenant", "a", "--bytes", "4MiB"});
    AwaitJson({"session", "ls"}, [session](const Json& json) {
      if (json["sessions"].empty() ||
          json["sessions"][0]["leased_bytes"] != 4 << 20) {
        return false;
      }
      *session = json["sessions"][0]["id"].get<uint64_t>();
      return true;
    });
    return hold;
  }
};

TEST_F(OperateTest, StatusShowsTenantsToo) {
  EXPECT_THAT(Gmb({"status"}).out,
              AllOf(HasSubstr("on device"), ContainsRegex("\na +0 +")));
  EXPECT_EQ(Gmb({"tenant", "ls", "--names"}).out, "a\nb\n");
}

TEST_F(OperateTest, TopInATenantsOwnDirectorySaysWhereToLook) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(
      cli::Run({"top", "--socket-dir", broker_->socket_dir() + "/tenants/a"},
               Terminal(), out, err),
      ExitCode::kFailed);
  EXPECT_THAT(err.str(), HasSubstr("`gmb quota`"));
}

TEST_F(OperateTest, TopOfADeviceThatIsNotThereIsRefused) {
  for (const std::string form : {"table", "json"}) {
    const Said said = Gmb({"top", "--once", "--device", "nosuch", "-o", form});
    EXPECT_EQ(said.code, ExitCode::kFailed);
    EXPECT_EQ(said.out, "");
    EXPECT_THAT(said.err, HasSubstr("NO_SUCH_DEVICE"));
  }
  EXPECT_EQ(Gmb({"top", "--once", "--device", "host-0"}).code, ExitCode::kOk);
}

TEST_F(OperateTest, ASessionIsHungUpAndTheAuditSaysByWhom) {
  uint64_t session = 0;
  absl::StatusOr<ChildProcess> hold = Hold(&session);
  ASSERT_TRUE(hold.ok()) << hold.status();
  const std::string id = absl::StrCat(session);
  EXPECT_EQ(Gmb({"session", "close", id}).code, ExitCode::kFailed)
      << "nobody was asked";
  const Said closed = Gmb({"session", "close", id, "--yes"});
  EXPECT_EQ(closed.code, ExitCode::kOk) << closed.err;
  EXPECT_THAT(closed.out, HasSubstr("of tenant a: gmb"));
  const absl::StatusOr<std::string> ended =
      hold->Wait(absl::Now() + absl::Seconds(60));
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(*ended, "exit code 3") << LogOf("hold");
  EXPECT_THAT(Gmb({"audit", "--limit", "1"}).out,
              AllOf(HasSubstr("close_session"),
                    HasSubstr(absl::StrCat("session ", id))));
  AwaitJson({"session", "list"},
            [](const Json& json) { return json["sessions"].empty(); });
  const Said again = Gmb({"session", "close", id, "--yes"});
  EXPECT_EQ(again.code, ExitCode::kFailed);
  EXPECT_THAT(again.err, HasSubstr("BAD_STATE"));
}

TEST_F(OperateTest, WatchShowsWhatWasAskedFor) {
  absl::StatusOr<ChildProcess> watch = Start(
      "watch", {"watch", "--tenant", "b", "--kind", "lease_granted", "--json"});
  ASSERT_TRUE(watch.ok()) << watch.status();
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (LogOf("watch").empty() && absl::Now() < deadline) {
    for (const char* const tenant : {"a", "b"}) {
      ASSERT_EQ(
          Gmb({"hold", "--tenant", tenant, "--bytes", "2MiB", "--for", "0s"})
              .code,
          ExitCode::kOk);
    }
  }
  watch->Signal(SIGINT);
  EXPECT_EQ(watch->Wait(absl::Now() + absl::Seconds(30)).value(),
            "exit code 0");
  const std::string log = LogOf("watch");
  ASSERT_FALSE(log.empty());
  for (const absl::string_view line :
       absl::StrSplit(log, '\n', absl::SkipEmpty())) {
    const Json event = Json::parse(std::string(line));
    EXPECT_EQ(event["tenant"], "b");
    EXPECT_EQ(event["kind"], "lease_granted");
  }
}

TEST_F(OperateTest, TimesAreThoseOfTheLog) {
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--weight", "3"}).code, ExitCode::kOk);
  EXPECT_THAT(Gmb({"audit", "--limit", "1"}).out,
              ContainsRegex("\n20[0-9][0-9]-[0-9-]+T[0-9:]+\\.[0-9]+Z "));
}

TEST_F(OperateTest, EveryDeviceIsNamedByAll) {
  const Json drained =
      Gmb({"pool", "drain", "--device", "all", "--json"}).json();
  EXPECT_EQ(drained["devices"][0]["device"], "host-0");
  EXPECT_TRUE(
      Gmb({"status", "--json"}).json()["pools"][0]["draining"].get<bool>());
  EXPECT_EQ(Gmb({"pool", "undrain", "--device", "all"}).code, ExitCode::kOk);
  EXPECT_EQ(
      Gmb({"tenant", "set", "a", "--device", "all", "--weight", "2"}).code,
      ExitCode::kOk);
  EXPECT_EQ(Gmb({"reclaim", "a", "--device", "all"}).code, ExitCode::kOk);
  const auto wrong =
      Gmb({"reclaim", "a", "--device", "all", "--bytes", "2MiB"});
  EXPECT_EQ(wrong.code, ExitCode::kUsage);
  EXPECT_THAT(wrong.err, HasSubstr("--bytes: is of one device"));
}

TEST_F(OperateTest, StatusWaitsUntilTheBrokerServes) {
  EXPECT_EQ(Gmb({"status", "--quiet", "--wait", "1m"}).code, ExitCode::kOk);
  const std::string socket_dir = broker_->socket_dir();
  ASSERT_EQ(kill(broker_->pid(), SIGSTOP), 0);
  absl::StatusOr<ChildProcess> wait =
      Start("wait", {"status", "--quiet", "--wait", "5m"});
  ASSERT_TRUE(wait.ok()) << wait.status();
  ASSERT_EQ(kill(broker_->pid(), SIGCONT), 0);
  EXPECT_EQ(wait->Wait(absl::Now() + absl::Seconds(60)).value(), "exit code 0");
  EXPECT_EQ(Gmb({"status", "--quiet", "--wait", "10ms"}).code, ExitCode::kOk);
}

class BundleTest : public OperateTest {
 protected:
  static constexpr char kSecret[] = "never-to-be-in-a-bundle";
  std::string Config() const override {
    std::ofstream(dir_->path() + "/token") << kSecret;
    return absl::StrCat("tenants:\n  - {name: a, token_file: ", dir_->path(),
                        "/token}\n");
  }
};

TEST_F(BundleTest, ABundleHasEverythingButSecrets) {
  const std::string file = dir_->path() + "/bundle.json";
  const Said said = Gmb({"debug", "bundle", "--file", file});
  EXPECT_EQ(said.code, ExitCode::kOk) << said.out << said.err;
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, Not(HasSubstr(kSecret)));
  const Json bundle = Json::parse(text);
  for (const char* const part :
       {"made_at", "gmb", "machine", "here", "status", "diagnosis", "tenants",
        "sessions", "leases", "waiting", "audit", "metrics"}) {
    EXPECT_TRUE(bundle.contains(part)) << part;
  }
  EXPECT_TRUE(bundle["errors"].empty()) << bundle["errors"];
  struct stat info {};
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const Said again = Gmb({"debug", "bundle", "--file", file});
  EXPECT_EQ(again.code, ExitCode::kFailed) << "it does not write over files";
  EXPECT_THAT(again.err, HasSubstr("File exists"));
}

TEST_F(BundleTest, WithoutABrokerABundleHasWhatIsSeenFromHere) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(cli::Run({"debug", "bundle", "--file", "-", "--socket-dir",
                      "/nonexistent/gmb"},
                     Terminal(), out, err),
            ExitCode::kFailed);
  const Json bundle = Json::parse(out.str());
  EXPECT_THAT(bundle["errors"]["broker"].get<std::string>(),
              HasSubstr("no broker answers"));
  EXPECT_FALSE(bundle["here"]["findings"].empty());
}

}  // namespace
}  // namespace gmb::cli
