#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/real_broker.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;

class IdleTest : public RealBroker {
 protected:
  std::vector<std::string> DeviceFlags() const override {
    return {"--device", "host:64MiB"};  // with the default host pool
  }
  // Starts an idle holder of 8 MiB of tenant a and waits until it is parked.
  absl::StatusOr<ChildProcess> StartIdle(std::vector<std::string> more) {
    std::vector<std::string> words = {"hold", "--tenant", "a",   "--bytes",
                                      "8MiB", "--output", "json"};
    words.insert(words.end(), more.begin(), more.end());
    absl::StatusOr<ChildProcess> hold = Start("hold", words);
    if (!hold.ok()) return hold;
    AwaitJson({"session", "list", "--tenant", "a"}, [](const Json& json) {
      return json["sessions"].size() == 1 &&
             json["sessions"][0]["gate"] == "PARKED";
    });
    return hold;
  }
  // How often the holder has said this step.
  int Steps(const std::string& step) const {
    int count = 0;
    for (const absl::string_view line :
         absl::StrSplit(LogOf("hold"), '\n', absl::SkipEmpty())) {
      if (Json::accept(line))
        count += Json::parse(std::string(line))["step"] == step ? 1 : 0;
    }
    return count;
  }
  // Of two leases one is evicted when the broker is killed.
  void ExpectOneOfTwoLost(const std::string& contents, const std::string& why,
                          bool interrupted = false) {
    absl::StatusOr<ChildProcess> hold =
        StartIdle({"--idle", "--count", "2", "--contents", contents});
    ASSERT_TRUE(hold.ok()) << hold.status();
    const Said said = Gmb({"reclaim", "a", "--bytes", "8MiB"});
    ASSERT_EQ(said.code, ExitCode::kOk) << said.out << said.err;
    if (interrupted) hold->Signal(SIGSTOP);
    ASSERT_EQ(kill(broker_->pid(), SIGKILL), 0);
    if (interrupted) {  // it meets both at once
      hold->Signal(SIGINT);
      hold->Signal(SIGCONT);
    }
    EXPECT_EQ(hold->Wait(Soon()).value(), "exit code 3") << LogOf("hold");
    EXPECT_EQ(Steps("lost"), 1) << LogOf("hold");
    EXPECT_THAT(LogOf("hold"), HasSubstr(why));
    EXPECT_EQ(Steps("verified"), 2 + 1) << "after filling, and what is mapped";
    EXPECT_EQ(Steps("released"), 1) << LogOf("hold");
  }
  static absl::Time Soon() { return absl::Now() + absl::Seconds(30); }
};

TEST_F(IdleTest, WhatIsIdleCanBeEvictedAndIsWhatItWasWhenItIsWoken) {
  absl::StatusOr<ChildProcess> hold = StartIdle({"--idle", "--seal"});
  ASSERT_TRUE(hold.ok()) << hold.status();
  const Said said =
      Gmb({"reclaim", "a", "--bytes", "8MiB", "--output", "json"});
  EXPECT_EQ(said.code, ExitCode::kOk) << said.out << said.err;
  EXPECT_EQ(said.json()["reclaimed_bytes"], 8 << 20);
  const Json lease =
      Gmb({"lease", "list", "--output", "json"}).json()["leases"][0];
  EXPECT_EQ(lease["state"], "EVICTED");
  EXPECT_EQ(lease["sealed"], true);
  hold->Signal(SIGINT);
  EXPECT_EQ(hold->Wait(Soon()).value(), "exit code 0") << LogOf("hold");
  EXPECT_EQ(Steps("woken"), 1) << LogOf("hold");
  EXPECT_EQ(Steps("verified"), 2) << "after filling, and when woken";
}

TEST_F(IdleTest, ItWakesEverySoOftenAndGoesOnIdling) {
  absl::StatusOr<ChildProcess> hold = StartIdle({"--idle", "200ms"});
  ASSERT_TRUE(hold.ok()) << hold.status();
  const absl::Time deadline = Soon();
  while (Steps("woken") < 3 && absl::Now() < deadline)
    absl::SleepFor(absl::Milliseconds(2));
  EXPECT_GE(Steps("woken"), 3) << LogOf("hold");
  hold->Signal(SIGINT);
  EXPECT_EQ(hold->Wait(Soon()).value(), "exit code 0") << LogOf("hold");
}

TEST_F(IdleTest, WhatWasAwayWhenTheBrokerDiedIsSaidToBeLostTheRestVerified) {
  ExpectOneOfTwoLost("preserve", "its contents were in the host pool");
}

TEST_F(IdleTest, WhatIsLostIsSaidAlsoWhenItIsInterruptedAtThatMoment) {
  ExpectOneOfTwoLost("preserve", "its contents were in the host pool",
                     /*interrupted=*/true);
}

TEST_F(IdleTest, WhatHadBeenDiscardedWhenTheBrokerDiedIsSaidToBeLost) {
  ExpectOneOfTwoLost("discard", "its contents were discarded");
}

TEST_F(IdleTest, MemoryOfAProgramWithoutAGateStaysAndReclaimSaysSo) {
  absl::StatusOr<ChildProcess> hold =
      Start("hold", {"hold", "--tenant", "a", "--bytes", "8MiB"});
  ASSERT_TRUE(hold.ok()) << hold.status();
  AwaitJson({"lease", "list", "--tenant", "a"}, [](const Json& json) {
    return json["leases"].size() == 1 && json["leases"][0]["state"] == "MAPPED";
  });
  const Said said = Gmb({"reclaim", "a", "--bytes", "8MiB", "--wait", "100ms"});
  EXPECT_EQ(said.code, ExitCode::kFailed);
  EXPECT_THAT(said.out, HasSubstr("8.00 MiB are lacking"));
  EXPECT_THAT(said.out, HasSubstr("why the rest stayed:\n- "));
}

}  // namespace
}  // namespace gmb::cli
