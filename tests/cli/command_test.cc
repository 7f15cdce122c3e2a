#include <csignal>
#include <sstream>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/real_broker.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using CommandTest = RealBroker;

TEST_F(CommandTest, StatusShowsAPoolWhosePartsAddUp) {
  const Json pool = Gmb({"status", "--output", "json"}).json()["pools"][0];
  uint64_t sum = 0;
  for (const char* const part :
       {"granted_bytes", "returned_bytes", "ready_bytes", "float_bytes",
        "scrubbing_bytes", "unreturned_bytes", "missing_bytes"}) {
    sum += pool[part].get<uint64_t>();
  }
  EXPECT_EQ(sum, pool["capacity_bytes"]);
  EXPECT_THAT(Gmb({"status"}).out, HasSubstr("= capacity"));
}

TEST_F(CommandTest, AProbeOfAServingBrokerIsSilent) {
  const Said said = Gmb({"status", "--quiet"});
  EXPECT_EQ(said.code, ExitCode::kOk);
  EXPECT_EQ(said.out + said.err, "");
}

TEST_F(CommandTest, ATenantIsMadeChangedShownAndDeleted) {
  const Said made =
      Gmb({"tenant", "set", "c", "--guarantee", "10%", "--limit", "16MiB",
           "--weight", "2", "--uid", "4000000", "--max-handles", "9",
           "--max-sessions", "3", "--output", "json"});
  ASSERT_EQ(made.code, ExitCode::kOk) << made.err;
  EXPECT_EQ(made.json()["changes"][0]["state"], "APPLIED");

  ASSERT_EQ(Gmb({"tenant", "set", "c", "--limit", "32MiB"}).code,
            ExitCode::kOk);
  const Json tenant = Gmb({"tenant", "get", "c", "--output", "json"}).json();
  EXPECT_EQ(tenant["max_handles"], 9);
  EXPECT_EQ(tenant["uids"][0], 4000000);
  EXPECT_DOUBLE_EQ(
      tenant["pools"][0]["quota"]["guarantee"]["fraction"].get<double>(), 0.1);
  EXPECT_EQ(tenant["pools"][0]["view"]["limit_bytes"], 32 << 20);
  EXPECT_THAT(Gmb({"tenant", "list"}).out, HasSubstr("10% = "));

  EXPECT_EQ(Gmb({"tenant", "delete", "c"}).code, ExitCode::kOk);
  const Said gone = Gmb({"tenant", "get", "c"});
  EXPECT_EQ(gone.code, ExitCode::kFailed);
  EXPECT_THAT(gone.err, HasSubstr("NO_SUCH_TENANT"));
  EXPECT_THAT(gone.err, HasSubstr("gmb tenant list"));
}

TEST_F(CommandTest, ATenantThatIsNewIsSaidToBe) {
  const Said misspelt = Gmb({"tenant", "set", "bacth", "--limit", "80%"});
  ASSERT_EQ(misspelt.code, ExitCode::kOk) << misspelt.err;
  EXPECT_THAT(misspelt.out, StartsWith("made tenant bacth\n"));
  EXPECT_THAT(Gmb({"tenant", "set", "bacth", "--limit", "70%"}).out,
              Not(HasSubstr("made")));
  const auto made = [this](const std::string& name) {
    return Gmb({"tenant", "set", name, "--weight", "2", "--output", "json"})
        .json()["made"];
  };
  EXPECT_EQ(made("bacth"), false);
  EXPECT_EQ(made("batch"), true);
}

TEST_F(CommandTest, ThePolicyOfReclaimIsSetAndAudited) {
  const Said set =
      Gmb({"tenant", "set", "a", "--may-terminate", "yes", "--min-residency",
           "30s", "--pause-grace", "250ms", "--host-limit", "50%"});
  ASSERT_EQ(set.code, ExitCode::kOk) << set.err;
  const Json entries =
      Gmb({"audit", "--limit", "1", "--output", "json"}).json()["entries"];
  ASSERT_EQ(entries.size(), 1U);
  const std::string detail = entries[0]["detail"].get<std::string>();
  EXPECT_THAT(detail, HasSubstr("may_terminate false -> true"));
  EXPECT_THAT(detail, HasSubstr("min_residency 0s -> 30s"));
  EXPECT_THAT(detail, HasSubstr("pause_grace 5s -> 250ms"));
  EXPECT_THAT(detail, HasSubstr("host_limit 100% -> 50%"));

  ASSERT_EQ(Gmb({"tenant", "set", "a", "--pause-grace", "1s"}).code,
            ExitCode::kOk);
  const Json tenant = Gmb({"tenant", "get", "a", "--output", "json"}).json();
  EXPECT_EQ(tenant["may_terminate"], true);
  EXPECT_EQ(tenant["min_residency"], 30.0);
  EXPECT_EQ(tenant["pause_grace"], 1.0);
}

TEST_F(CommandTest, UidsAreSetTogetherAndTakenAwayWithNone) {
  const auto uids = [this] {
    return Gmb({"tenant", "get", "a", "--output", "json"}).json()["uids"];
  };
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--uid", "4000000,4000001"}).code,
            ExitCode::kOk);
  EXPECT_EQ(uids(), Json({4000000, 4000001}));
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--uid", "7", "--uid", "8"}).code,
            ExitCode::kOk);
  EXPECT_EQ(uids(), Json({7, 8}));
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--uid", "8,7,8,7"}).code,
            ExitCode::kOk);
  EXPECT_EQ(uids(), Json({8, 7})) << "once each";
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--uid", "7,8"}).code, ExitCode::kOk);
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--weight", "2"}).code, ExitCode::kOk);
  EXPECT_EQ(uids(), Json({7, 8}));
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--uid", "none"}).code, ExitCode::kOk);
  EXPECT_EQ(uids(), Json::array());
}

TEST_F(CommandTest, AGuaranteeAboveTheLimitNamesTheField) {
  const Said said = Gmb({"tenant", "set", "a", "--guarantee", "40%", "--limit",
                         "30%", "--output", "json"});
  EXPECT_EQ(said.code, ExitCode::kFailed);
  EXPECT_EQ(Json::parse(said.err)["error"]["field"], "guarantee");
}

TEST_F(CommandTest, GuaranteesThatDoNotFitAreRefusedWithTheDeficit) {
  const Said said =
      Gmb({"tenant", "set", "a", "--guarantee", "80%", "--limit", "100%"});
  EXPECT_EQ(said.code, ExitCode::kFailed);
  EXPECT_THAT(said.err, HasSubstr("OVERCOMMITTED"));
  const Said json = Gmb({"tenant", "set", "a", "--guarantee", "80%", "--limit",
                         "100%", "--output", "json"});
  EXPECT_GT(Json::parse(json.err)["error"]["deficit_bytes"], 0);
}

TEST_F(CommandTest, APoolIsResizedDrainedAndTakenBack) {
  const Said resized = Gmb({"pool", "resize", "48MiB"});
  EXPECT_EQ(resized.code, ExitCode::kOk) << resized.err;
  EXPECT_EQ(Gmb({"pool", "drain"}).code, ExitCode::kOk);
  EXPECT_TRUE(Gmb({"status", "--output", "json"})
                  .json()["pools"][0]["draining"]
                  .get<bool>());
  const Said hold =
      Gmb({"hold", "--tenant", "a", "--bytes", "2MiB", "--for", "0s"});
  EXPECT_EQ(hold.code, ExitCode::kFailed);
  EXPECT_THAT(hold.err, HasSubstr("DRAINING"));
  EXPECT_EQ(Gmb({"pool", "undrain"}).code, ExitCode::kOk);
  EXPECT_EQ(
      Gmb({"hold", "--tenant", "a", "--bytes", "2MiB", "--for", "0s"}).code,
      ExitCode::kOk);
}

TEST_F(CommandTest, TheAuditLogNamesWhatOperatorsChanged) {
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--weight", "3"}).code, ExitCode::kOk);
  const Json entries =
      Gmb({"audit", "--limit", "1", "--output", "json"}).json()["entries"];
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0]["subject"], "a");
  EXPECT_THAT(Gmb({"audit"}).out, HasSubstr("uid "));
}

TEST_F(CommandTest, DoctorFindsAHealthyBroker) {
  const Said said = Gmb({"doctor"});
  EXPECT_THAT(said.out, HasSubstr("gmbd "));
  EXPECT_THAT(said.out, HasSubstr("operators are those who may enter"));
  const Json findings = Gmb({"doctor", "--output", "json"}).json()["findings"];
  for (const Json& finding : findings) {
    EXPECT_NE(finding["severity"], "PROBLEM") << finding;
  }
}

TEST_F(CommandTest, DoctorWithoutABrokerIsAProblemAndFails) {
  broker_.reset();
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(
      cli::Run({"doctor", "--socket-dir", dir_->path()}, Terminal(), out, err),
      ExitCode::kFailed);
  EXPECT_THAT(out.str(), HasSubstr("problem"));
}

TEST_F(CommandTest, WatchPrintsEventsAsLinesUntilItIsInterrupted) {
  absl::StatusOr<ChildProcess> watch =
      Start("watch", {"watch", "--output", "json"});
  ASSERT_TRUE(watch.ok()) << watch.status();
  // Events before it was listening are not shown, so make some until one is.
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (LogOf("watch").empty() && absl::Now() < deadline) {
    ASSERT_EQ(
        Gmb({"hold", "--tenant", "a", "--bytes", "2MiB", "--for", "0s"}).code,
        ExitCode::kOk);
  }
  watch->Signal(SIGINT);
  EXPECT_EQ(watch->Wait(absl::Now() + absl::Seconds(30)).value(),
            "exit code 0");
  const std::string log = LogOf("watch");
  ASSERT_FALSE(log.empty());
  for (const absl::string_view line :
       absl::StrSplit(log, '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(Json::parse(std::string(line)).contains("kind")) << line;
  }
}

TEST_F(CommandTest, WatchEndsWithTheBrokerAndSaysThatItStops) {
  absl::StatusOr<ChildProcess> watch = Start("watch", {"watch"});
  ASSERT_TRUE(watch.ok()) << watch.status();
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (LogOf("watch").empty() && absl::Now() < deadline) {
    ASSERT_EQ(
        Gmb({"hold", "--tenant", "a", "--bytes", "2MiB", "--for", "0s"}).code,
        ExitCode::kOk);
  }
  EXPECT_EQ(broker_->Stop(absl::Seconds(30)).value(), "exit code 0");
  EXPECT_EQ(watch->Wait(absl::Now() + absl::Seconds(30)).value(),
            "exit code 3");
  EXPECT_THAT(LogOf("watch"), HasSubstr("has stopped or is stopping"));
  EXPECT_THAT(LogOf("watch"), HasSubstr("start gmbd with --socket-dir"));
}

TEST_F(CommandTest, AgainstABrokerThatHangsTheySayWhatToDo) {
  ASSERT_EQ(kill(broker_->pid(), SIGSTOP), 0);
  absl::StatusOr<ChildProcess> status = Start("status", {"status"});
  absl::StatusOr<ChildProcess> doctor = Start("doctor", {"doctor"});
  absl::StatusOr<ChildProcess> hold =
      Start("hold", {"hold", "--tenant", "a", "--bytes", "2MiB"});
  ASSERT_TRUE(status.ok() && doctor.ok() && hold.ok());
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  EXPECT_EQ(status->Wait(deadline).value(), "exit code 3");
  EXPECT_EQ(doctor->Wait(deadline).value(), "exit code 1");
  EXPECT_EQ(hold->Wait(deadline).value(), "exit code 3");
  for (const char* const name : {"status", "hold"}) {
    EXPECT_THAT(LogOf(name), HasSubstr("is there but does not answer in time"));
  }
  // Its findings are wrapped.
  EXPECT_THAT(LogOf("doctor"), HasSubstr("is there but"));
  ASSERT_EQ(kill(broker_->pid(), SIGCONT), 0);
}

class TwoDevicesTest : public RealBroker {
 protected:
  std::vector<std::string> DeviceFlags() const override {
    return {"--device", "host:64MiB", "--device", "host:64MiB"};
  }
  // The tenant's quota on each of the two, as it was asked for.
  Json Quotas() const {
    const Json tenant = Gmb({"tenant", "get", "a", "--output", "json"}).json();
    Json quotas;
    for (const Json& pool : tenant["pools"]) quotas.push_back(pool["quota"]);
    return quotas;
  }
};

TEST_F(TwoDevicesTest, WithoutADeviceWhatIsLeftOutStaysOnEveryDevice) {
  const Json before = Quotas();
  ASSERT_EQ(before.size(), 2U);
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--device", "host-1", "--guarantee",
                 "8MiB", "--limit", "90%"})
                .code,
            ExitCode::kOk);
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--weight", "2"}).code, ExitCode::kOk);
  const Json after = Quotas();
  EXPECT_EQ(after[0]["guarantee"], before[0]["guarantee"]);
  EXPECT_EQ(after[0]["limit"], before[0]["limit"]);
  EXPECT_EQ(after[1]["guarantee"]["bytes"], 8 << 20);
  EXPECT_DOUBLE_EQ(after[1]["limit"]["fraction"].get<double>(), 0.9);
  EXPECT_EQ(after[0]["weight"], 2.0);
  EXPECT_EQ(after[1]["weight"], 2.0);
}

}  // namespace
}  // namespace gmb::cli
