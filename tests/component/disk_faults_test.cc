// The disk of a real broker's state fails under an operator's change, or does
// not answer, and its wall clock jumps.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "nlohmann/json.hpp"
#include "tests/component/faults_fixture.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class DiskFaultsTest : public FaultsFixture {
 protected:
  static constexpr std::chrono::seconds kDrainDeadline{2};

  [[nodiscard]] BrokerOptions Options() const override {
    BrokerOptions options = FaultsFixture::Options();
    options.drain_deadline = "2s";
    return options;
  }
  // Of a broker that detaches when it is stopped.
  void LeaveAChangeInDoubt() {
    KillBroker();
    BrokerOptions detaching = Options();
    detaching.flags.insert(detaching.flags.end(), {"--on-stop", "detach"});
    StartBroker(detaching);
    Arm({.call = FaultyCall::kLastOfDisk, .error = EIO, .count = 1000});
    EXPECT_EQ(Gmb({"tenant", "set", "other", "--weight", "7"}).exit_code, 1);
  }
  [[nodiscard]] double WeightOfOther() const {
    v1::GetTenantRequest request;
    request.set_name("other");
    const auto tenant = admin().GetTenant(request);
    EXPECT_TRUE(tenant.ok()) << tenant.status();
    return tenant.ok() ? tenant->pools(0).quota().weight() : 0;
  }
};

// It is on the disk by then, and the disk cannot be read.
TEST_F(DiskFaultsTest, ARefusedChangeIsListedAsTakenBack) {
  Arm({.call = FaultyCall::kLastOfDisk, .error = EIO, .count = 1000});
  const Said set = Gmb({"tenant", "set", "other", "--weight", "7"});
  EXPECT_EQ(set.exit_code, 1) << set.out;
  EXPECT_GT(Disarm(), 0U) << "no directory was synced";
  EXPECT_THAT(broker().Log(), HasSubstr(" state_not_written "));
  EXPECT_EQ(WeightOfOther(), 1);
  const Said text = Gmb({"audit", "--limit", "2"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("set_tenant_taken_back"),
                              HasSubstr("other: weight 7 -> 1")));
  const Said json = Gmb({"audit", "--tenant", "other", "--output", "json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const Json entries = Json::parse(json.out).at("entries");
  ASSERT_GE(entries.size(), 2U) << json.out;
  EXPECT_EQ(entries[0].at("action"), "set_tenant_taken_back");
  EXPECT_EQ(entries[0].at("operator_name"), "gmbd");
  EXPECT_EQ(entries[1].at("action"), "set_tenant");
  EXPECT_THAT(broker().Log(), HasSubstr(" state_taken_back "));
  Restart();
  EXPECT_EQ(WeightOfOther(), 1);
  ExpectTheWitnessHasAll();
}

// Which is what an upgrade does.
TEST_F(DiskFaultsTest, ABrokerThatDetachesLeavesNoRefusedChange) {
  LeaveAChangeInDoubt();
  EXPECT_GT(Disarm(), 0U);
  StopBroker();
  StartBroker(Options());
  EXPECT_EQ(WeightOfOther(), 1);
  EXPECT_THAT(Gmb({"audit", "--limit", "2"}).out,
              HasSubstr("set_tenant_taken_back"));
  ExpectTheWitnessHasAll();
}

TEST_F(DiskFaultsTest, ADiskThatDoesNotAnswerHoldsNoDetachUp) {
  LeaveAChangeInDoubt();
  Arm({.call = FaultyCall::kDiskAnswer});
  broker().program().Signal(SIGTERM);
  EXPECT_TRUE(Await([this] {
    return absl::StrContains(broker().Log(), " not_settled ");
  })) << broker().Log();
  StopBroker();
  Disarm();
  StartBroker(Options());
  ExpectTheWitnessHasAll();
}

TEST_F(DiskFaultsTest, AChangeWaitsForADiskThatDoesNotAnswerAndLeasesDoNot) {
  Arm({.call = FaultyCall::kDiskAnswer});
  const auto set = StartGmb("set", {"tenant", "set", "other", "--weight", "7"});
  ASSERT_TRUE(Await([this] { return DiskWasAsked(); }));
  ExpectTheWitnessHasAll();
  ExpectServed("other");
  EXPECT_EQ(WeightOfOther(), 1);
  EXPECT_TRUE(set->IsRunning()) << set->Err();
  Disarm();
  EXPECT_EQ(set->AwaitExit(), 0) << set->Err();
  EXPECT_EQ(WeightOfOther(), 7);
}

// A process that comes while the disk has the deletion would be lost with the
// next broker.
TEST_F(DiskFaultsTest, NobodyComesToATenantThatIsBeingDeleted) {
  v1::SetTenantRequest by_uid;
  by_uid.set_name("leaving");
  by_uid.mutable_uids()->add_uid(::getuid());
  ASSERT_TRUE(SetTenant(by_uid).ok());
  Arm({.call = FaultyCall::kDiskAnswer});
  const auto deletion = StartGmb("delete", {"tenant", "delete", "leaving"});
  ASSERT_TRUE(Await([this] { return DiskWasAsked(); }));
  const auto client = Client::Connect(OptionsFor(SocketDir()));
  EXPECT_FALSE(client.ok());
  EXPECT_THAT(client.status().message(), HasSubstr("is being deleted"));
  Disarm();
  EXPECT_EQ(deletion->AwaitExit(), 0) << deletion->Err();
  v1::GetTenantRequest its;
  its.set_name("leaving");
  EXPECT_FALSE(admin().GetTenant(its).ok());
  Restart();
  EXPECT_FALSE(admin().GetTenant(its).ok());
}

// Its deadline is a time to wait, and no time of day.
TEST_F(DiskFaultsTest, AWallClockThatJumpsMovesTheEndOfNoDrain) {
  const auto client = ConnectAs("other");
  ASSERT_NE(client, nullptr);
  const auto begun = std::chrono::steady_clock::now();
  broker().program().Signal(SIGTERM);
  ASSERT_TRUE(broker().program().AwaitErr(" draining ")) << broker().Log();
  SetWallClock(absl::Hours(24));
  EXPECT_EQ(broker().program().AwaitExit(), 0) << broker().Log();
  EXPECT_GE(std::chrono::steady_clock::now() - begun, kDrainDeadline);
  EXPECT_TRUE(Await([&client] { return !client->status().ok(); }));
  SetWallClock(absl::ZeroDuration());
  StartBroker(Options());
}

// Until such a time of day they hold, whatever says that it is that.
TEST_F(DiskFaultsTest, AWallClockThatJumpsEndsValuesForATime) {
  EXPECT_EQ(
      Gmb({"tenant", "set", "other", "--weight", "7", "--for", "1h"}).exit_code,
      0);
  EXPECT_EQ(WeightOfOther(), 7);
  SetWallClock(absl::Hours(2));
  // The broker looks at the clock at each such change, and every ten seconds.
  EXPECT_EQ(
      Gmb({"tenant", "set", "owner", "--weight", "2", "--for", "1h"}).exit_code,
      0);
  EXPECT_TRUE(Await([this] { return WeightOfOther() == 1; }));
  SetWallClock(absl::ZeroDuration());
}

}  // namespace
}  // namespace gmb::component
