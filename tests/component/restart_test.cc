// A broker that is killed and started again with its keeper: sessions, leases
// and contents go on, and nobody greets again.
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "tests/component/restart_fixture.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RestartTest : public RestartFixture {
 protected:
  void SetUp() override {
    RestartFixture::SetUp();
    StartBroker(Options());
    MakeTenant("a");
    MakeTenant("b");
  }
};

TEST_F(RestartTest, LeasesAndSessionsGoOn) {
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(20 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  Fill(*lease, 1);
  for (int i = 0; i < 3; ++i) {
    Restart();
    EXPECT_EQ(Status().sessions(), 1U) << "beside the operator's own";
    EXPECT_EQ(Pool().granted_bytes(), 20 * kMiB);
    EXPECT_THAT(LinesOf("session_opened"), IsEmpty());
    EXPECT_TRUE(client->status().ok()) << client->status();
    auto more = client->Acquire(8 * kMiB);
    ASSERT_TRUE(more.ok()) << more.status();
    EXPECT_TRUE(Holds(*lease, 1));
    // No byte of the first is a byte of the second.
    Fill(*more, 2);
    EXPECT_TRUE(Holds(*lease, 1));
    EXPECT_TRUE(std::move(*more).Release().ok());
  }
  EXPECT_TRUE(std::move(*lease).Release().ok());
  EXPECT_TRUE(Await([&] { return Pool().granted_bytes() == 0; }));
  ExpectServed("b");
  ExpectNothingIsLeft();
}

TEST_F(RestartTest, UsageGoesOn) {
  const auto usage = [this] {
    v1::ListUsageRequest request;
    request.set_tenant("a");
    const auto list = admin().ListUsage(request);
    EXPECT_TRUE(list.ok()) << list.status();
    v1::TenantUsage all;  // a day may end meanwhile
    if (!list.ok()) return all;
    for (const v1::TenantUsage& day : list->usage()) {
      all.set_peak_bytes(std::max(all.peak_bytes(), day.peak_bytes()));
      all.set_byte_seconds(all.byte_seconds() + day.byte_seconds());
      all.set_granted(all.granted() + day.granted());
    }
    return all;
  };
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(20 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(Await([&] { return usage().byte_seconds() > 0; }));
  const v1::TenantUsage before = usage();
  EXPECT_EQ(before.peak_bytes(), 20 * kMiB);
  EXPECT_EQ(before.granted(), 1U);
  Restart();
  // No event said that it was granted.
  EXPECT_TRUE(Await(
      [&] { return usage().byte_seconds() > before.byte_seconds() + 1; }));
  EXPECT_EQ(usage().peak_bytes(), 20 * kMiB);
  EXPECT_EQ(usage().granted(), 1U);
  EXPECT_TRUE(std::move(*lease).Release().ok());
}

TEST_F(RestartTest, WhatIsInHostMemoryComesBack) {
  const auto client = Parked("a");
  auto lease = client->Acquire(16 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  {
    auto scope = client->Enter(absl::Seconds(30));
    ASSERT_TRUE(scope.ok());
    Fill(*lease, 7);
  }
  Evict("a", 16 * kMiB);
  Restart();
  EXPECT_EQ(Status().host_pool().held_bytes(), 16 * kMiB);
  EXPECT_EQ(Pool().granted_bytes(), 0U);
  // Its memory is somebody else's meanwhile.
  ExpectServed("b");
  {
    auto scope = client->Enter(absl::Seconds(60));
    ASSERT_TRUE(scope.ok()) << scope.status();
    EXPECT_TRUE(Holds(*lease, 7));
  }
  // Away once more, and killed once more.
  Evict("a", 16 * kMiB);
  Restart();
  auto scope = client->Enter(absl::Seconds(60));
  ASSERT_TRUE(scope.ok()) << scope.status();
  EXPECT_TRUE(Holds(*lease, 7));
  *scope = Scope();
  EXPECT_TRUE(std::move(*lease).Release().ok());
  ExpectNothingIsLeft();
}

TEST_F(RestartTest, SharedLeasesStayShared) {
  const auto writer = ConnectAs("a");
  AcquireOptions options;
  options.share_as = "weights";
  auto lease = writer->Acquire(12 * kMiB, options);
  ASSERT_TRUE(lease.ok()) << lease.status();
  Fill(*lease, 3);
  ASSERT_TRUE(lease->Seal().ok());
  const auto reader = ConnectAs("a");
  auto attached = reader->Attach("weights");
  ASSERT_TRUE(attached.ok()) << attached.status();
  Restart();
  EXPECT_EQ(Pool().granted_bytes(), 12 * kMiB);
  EXPECT_TRUE(Holds(*attached, 3));
  const auto late = ConnectAs("a");
  auto attached_late = late->Attach("weights");
  ASSERT_TRUE(attached_late.ok()) << attached_late.status();
  EXPECT_TRUE(Holds(*attached_late, 3));
  EXPECT_EQ(Pool().granted_bytes(), 12 * kMiB);
  EXPECT_TRUE(std::move(*lease).Release().ok());
  EXPECT_TRUE(std::move(*attached_late).Release().ok());
  Restart();
  EXPECT_TRUE(Holds(*attached, 3));
  EXPECT_EQ(Pool().granted_bytes(), 12 * kMiB);
  EXPECT_TRUE(std::move(*attached).Release().ok());
  EXPECT_TRUE(Await([&] { return Pool().granted_bytes() == 0; }));
  ExpectNothingIsLeft();
}

TEST_F(RestartTest, ARequestThatWaitsIsGrantedByTheNextBroker) {
  const auto holder = ConnectAs("b");
  auto all = holder->Acquire(90 * kMiB);
  ASSERT_TRUE(all.ok()) << all.status();
  const auto client = ConnectAs("a");
  auto waiting = std::async(std::launch::async, [&] {
    return client->Acquire(64 * kMiB, WaitFor(absl::Seconds(120)));
  });
  ASSERT_TRUE(Await([&] { return Pool().waiting() == 1; }));
  Restart();
  ASSERT_TRUE(Await([&] { return Pool().waiting() == 1; }));
  EXPECT_TRUE(std::move(*all).Release().ok());
  auto granted = waiting.get();
  ASSERT_TRUE(granted.ok()) << granted.status();
  EXPECT_TRUE(std::move(*granted).Release().ok());
}

TEST_F(RestartTest, AProcessThatDiedMeanwhileGivesItsMemoryBack) {
  auto hold = StartGmb("hold", {"hold", "--tenant", "a", "--bytes", "24MiB"});
  ASSERT_TRUE(Await([&] { return Pool().granted_bytes() == 24 * kMiB; }));
  KillBroker();
  hold->Signal(SIGKILL);
  ASSERT_EQ(hold->AwaitExit(), 128 + SIGKILL);
  StartBroker(Options());
  EXPECT_TRUE(Await(
      [&] { return Status().sessions() == 0 && Pool().granted_bytes() == 0; }));
  auto client = ConnectAs("b");
  auto lease = client->Acquire(90 * kMiB, WaitFor(absl::Seconds(60)));
  EXPECT_TRUE(lease.ok()) << lease.status();
  client.reset();
  ExpectNothingIsLeft();
}

// The keeper dies alone: a new one is filled, and does for the next broker.
TEST_F(RestartTest, AKeeperThatDiesIsReplacedWhileTheBrokerLives) {
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  Fill(*lease, 5);
  KillKeeper();
  ASSERT_TRUE(Await(
      [&] { return absl::StrContains(broker().Log(), " keeper_lost "); }));
  // Without one everything goes on.
  auto meanwhile = client->Acquire(6 * kMiB);
  ASSERT_TRUE(meanwhile.ok()) << meanwhile.status();
  Fill(*meanwhile, 6);
  const auto late = ConnectAs("b");
  StartKeeper();
  ASSERT_TRUE(Await(
      [&] { return absl::StrContains(broker().Log(), " keeper_found "); }));
  Restart();
  EXPECT_EQ(Status().sessions(), 2U);
  EXPECT_TRUE(Holds(*lease, 5));
  EXPECT_TRUE(Holds(*meanwhile, 6));
  auto more = late->Acquire(2 * kMiB);
  EXPECT_TRUE(more.ok()) << more.status();
  EXPECT_TRUE(std::move(*lease).Release().ok());
}

// Each of them alone is survived.
TEST_F(RestartTest, WithoutBothAllBeginsAnew) {
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  Fill(*lease, 17);
  const auto parked = Parked("b");
  auto away = parked->Acquire(16 * kMiB);
  ASSERT_TRUE(away.ok()) << away.status();
  Evict("b", 16 * kMiB);
  KillKeeper();
  KillBroker();
  StartKeeper();
  StartBroker(Options());
  for (const auto* const one : {&client, &parked}) {
    EXPECT_TRUE(Await([&] { return !(*one)->status().ok(); }));
    EXPECT_TRUE(absl::IsUnavailable((*one)->status())) << (*one)->status();
  }
  EXPECT_EQ(Status().sessions(), 0U);
  EXPECT_EQ(Pool().granted_bytes(), 0U);
  EXPECT_EQ(Status().host_pool().held_bytes(), 0U);
  // Mapped memory stays, and evicted memory does not come back.
  EXPECT_TRUE(Holds(*lease, 17));
  EXPECT_TRUE(absl::IsUnavailable(parked->Enter(absl::Seconds(30)).status()));
  EXPECT_TRUE(std::move(*lease).Release().ok());
  EXPECT_TRUE(std::move(*away).Release().ok());
  ExpectServed("a");
  ExpectServed("b");
  ExpectNothingIsLeft();
}

TEST_F(RestartTest, AKeeperThatLivesIsReplacedAndNobodyNotices) {
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  Fill(*lease, 15);
  const pid_t first = KeeperStatus().pid;
  const std::string id = KeeperId();
  ReplaceKeeper();
  EXPECT_NE(KeeperStatus().pid, first);
  EXPECT_EQ(KeeperId(), id) << "it has begun anew";
  auto meanwhile = client->Acquire(6 * kMiB);
  ASSERT_TRUE(meanwhile.ok()) << meanwhile.status();
  Fill(*meanwhile, 16);
  Restart();
  // Also while no broker lives.
  KillBroker();
  ReplaceKeeper();
  StartBroker(Options());
  EXPECT_EQ(Status().sessions(), 1U);
  EXPECT_TRUE(Holds(*lease, 15));
  EXPECT_TRUE(Holds(*meanwhile, 16));
  EXPECT_TRUE(client->Acquire(2 * kMiB).ok());
}

TEST_F(RestartTest, TwoBrokersAtOnceAreOne) {
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  Fill(*lease, 8);
  // In other directories, so that the keeper alone is in its way.
  const std::string tenants = Directory() + "/two.yaml";
  std::ofstream(tenants) << "tenants: [{name: a}, {name: b}]\n";
  std::vector<std::string> argv = {GMBD_PROGRAM,
                                   "--socket-dir",
                                   Directory() + "/run2",
                                   "--state-dir",
                                   Directory() + "/state2",
                                   "--device",
                                   "host:96MiB",
                                   "--fresh-state",
                                   "--keeper",
                                   KeeperSocket(),
                                   "--config",
                                   tenants};
  Program second(Directory(), "second", argv);
  EXPECT_EQ(second.AwaitExit(), 1);
  EXPECT_THAT(second.Err(), HasSubstr(absl::StrCat(broker().program().pid())));
  EXPECT_TRUE(Holds(*lease, 8));
  EXPECT_TRUE(client->Acquire(2 * kMiB).ok());
  // One that waits is served as soon as the first has died.
  Program third(Directory(), "third", argv);
  KillBroker();
  EXPECT_TRUE(third.AwaitErr(" adopted ")) << third.Err();
  third.Signal(SIGKILL);
  EXPECT_EQ(third.AwaitExit(), 128 + SIGKILL);
  StartBroker(Options());
  EXPECT_TRUE(Holds(*lease, 8));
  // A release that was made meanwhile is said again on the new stream.
  EXPECT_TRUE(Await([&] { return Pool().granted_bytes() == 10 * kMiB; }));
}

TEST_F(RestartTest, ABrokerWithoutTheKeeperLeavesWhatItHas) {
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  Fill(*lease, 9);
  KillBroker();
  BrokerOptions alone = Options();
  alone.flags.clear();
  StartBroker(alone);
  ExpectServed("b");
  EXPECT_EQ(Pool().granted_bytes(), 0U);
  EXPECT_TRUE(Holds(*lease, 9));
  StopBroker();
  StartBroker(Options());
  EXPECT_EQ(Pool().granted_bytes(), 10 * kMiB);
  EXPECT_TRUE(Holds(*lease, 9));
  EXPECT_TRUE(client->Acquire(2 * kMiB).ok());
}

TEST_F(RestartTest, WithoutItsKeeperABrokerDoesNotStart) {
  StopBroker();
  KillKeeper();
  BrokerProcess none(Directory(), Options());
  EXPECT_EQ(none.program().AwaitExit(), 1);
  EXPECT_THAT(none.Log(), HasSubstr("keeper"));
  EXPECT_THAT(none.Log(), HasSubstr(KeeperSocket()));
  StartKeeper();
  keeper_->Signal(SIGSTOP);
  BrokerProcess stopped(Directory(), Options());
  EXPECT_EQ(stopped.program().AwaitExit(), 1);
  EXPECT_THAT(stopped.Log(),
              HasSubstr(absl::StrCat("kill -CONT ", keeper_->pid())));
  keeper_->Signal(SIGCONT);
}

TEST_F(RestartTest, AStopCanLeaveAllToTheNextBroker) {
  StopBroker();
  BrokerOptions detaching = Options();
  detaching.flags.insert(detaching.flags.end(), {"--on-stop", "detach"});
  StartBroker(detaching);
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  Fill(*lease, 10);
  StopBroker();
  StartBroker(Options());
  EXPECT_THAT(LinesOf("session_opened"), IsEmpty());
  EXPECT_TRUE(Holds(*lease, 10));
  EXPECT_TRUE(std::move(*lease).Release().ok());
}

// gmb drain ends in order the sessions that SIGTERM leaves to the next broker.
TEST_F(RestartTest, ADrainEndsAllAlsoWhereAStopDetaches) {
  StopBroker();
  BrokerOptions detaching = Options();
  detaching.flags.insert(detaching.flags.end(), {"--on-stop", "detach"});
  BrokerProcess drained(Directory(), detaching);
  ASSERT_NE(drained.AwaitServing(), nullptr) << drained.Log();
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  const Said refused = Gmb({"drain"});
  EXPECT_NE(refused.exit_code, 0) << "nobody is there to be asked";
  EXPECT_TRUE(drained.program().IsRunning());
  const Said said = Gmb({"drain", "--yes", "--output", "json"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr(absl::StrCat(drained.program().pid())));
  EXPECT_EQ(drained.program().AwaitExit(), 4);
  EXPECT_TRUE(Await([&] { return !client->status().ok(); }));
  EXPECT_EQ(KeeperStatus().entries, 0U);
  EXPECT_EQ(Gmb({"drain", "--yes"}).exit_code, 3) << "nobody is there";
  StartBroker(Options());
  EXPECT_THAT(Gmb({"audit", "--limit", "1"}).out,
              AllOf(HasSubstr(" drain"), HasSubstr("(gmb)")));
}

// The library that plays a driver which dies of one slab; it cannot come before
// a sanitizer's.
TEST_F(RestartTest, ARecordThatKillsTwoBrokersIsSetAside) {
  if (kInstrumented) GTEST_SKIP();
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  const auto other = ConnectAs("b");
  auto goes_on = other->Acquire(10 * kMiB);
  ASSERT_TRUE(goes_on.ok()) << goes_on.status();
  Fill(*goes_on, 11);
  KillBroker();
  BrokerOptions options = Options();
  options.wrapper = {"env", "LD_PRELOAD=" GMB_POISON,
                     absl::StrCat("GMB_POISON_INODE=", InodeAt(lease->data()))};
  for (int i = 0; i < 2; ++i) {
    BrokerProcess dies(Directory(), options);
    EXPECT_EQ(dies.program().AwaitExit(), 128 + SIGABRT) << dies.Log();
    EXPECT_TRUE(client->status().ok()) << client->status();
  }
  StartBroker(options);
  const std::string log = broker().Log();
  EXPECT_THAT(log, HasSubstr(absl::StrCat("lease ", lease->id(),
                                          " of tenant a: "
                                          "brokers have died")));
  EXPECT_THAT(log, HasSubstr("session_not_adopted tenant=a"));
  EXPECT_TRUE(Await([&] { return !client->status().ok(); }));
  EXPECT_TRUE(Holds(*goes_on, 11));
  EXPECT_TRUE(std::move(*goes_on).Release().ok());
  ExpectServed("a");
  ExpectNothingIsLeft();
}

// One tenant is gone; the other's session goes on.
TEST_F(RestartTest, WhatCannotBeAdoptedIsHungUp) {
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  const auto other = ConnectAs("b");
  KillBroker();
  // The quota of a tenant is in the database, which is gone now: that is not
  // taken for a first start.
  BrokerOptions without = Options();
  ASSERT_EQ(std::rename((Directory() + "/state").c_str(),
                        (Directory() + "/old").c_str()),
            0);
  without.config = "tenants: [{name: b}]\n";
  for (int i = 0; i < 2; ++i) {
    BrokerProcess refused(Directory(), without);
    EXPECT_EQ(refused.program().AwaitExit(), 1);
    EXPECT_THAT(refused.Log(), HasSubstr("state/gmb.db"));
    EXPECT_THAT(refused.Log(), HasSubstr("--fresh-state"));
  }
  EXPECT_TRUE(client->status().ok()) << client->status();
  without.flags.push_back("--fresh-state");
  StartBroker(without);
  EXPECT_THAT(broker().Log(), HasSubstr(" session_not_adopted "));
  const std::string metrics = admin().GetMetrics().value_or("");
  EXPECT_THAT(metrics, HasSubstr("\ngmb_not_adopted 1\n"));
  EXPECT_THAT(metrics, HasSubstr("\ngmb_keeper_up 1\n"));
  EXPECT_TRUE(Await([&] { return !client->status().ok(); }));
  const auto goes_on = other->Acquire(2 * kMiB);
  EXPECT_TRUE(goes_on.ok()) << goes_on.status();
  EXPECT_EQ(Pool().granted_bytes(), 2 * kMiB);
}

// A GPU that was taken out, say. Sessions on the other one go on.
TEST_F(RestartTest, WhatWasOnADeviceThatIsGoneIsHungUp) {
  StopBroker();
  BrokerOptions two = Options();
  two.devices = {"host:64MiB", "host:96MiB"};
  StartBroker(two);
  const auto lost = ConnectAs("a");
  AcquireOptions on_second;
  on_second.device = "host-1";
  auto gone = lost->Acquire(10 * kMiB, on_second);
  ASSERT_TRUE(gone.ok()) << gone.status();
  Fill(*gone, 18);
  const auto client = ConnectAs("b");
  AcquireOptions on_first;
  on_first.device = "host-0";
  auto lease = client->Acquire(10 * kMiB, on_first);
  ASSERT_TRUE(lease.ok()) << lease.status();
  Fill(*lease, 19);
  KillBroker();
  BrokerOptions one = two;
  one.devices.pop_back();
  StartBroker(one);
  EXPECT_THAT(broker().Log(),
              AllOf(HasSubstr(" session_not_adopted "),
                    HasSubstr("does not serve its device: device=host-1")));
  EXPECT_TRUE(Await([&] { return !lost->status().ok(); }));
  EXPECT_TRUE(Holds(*gone, 18)) << "what is mapped stays";
  EXPECT_TRUE(client->status().ok()) << client->status();
  EXPECT_TRUE(Holds(*lease, 19));
  EXPECT_EQ(Status().sessions(), 1U);
  EXPECT_EQ(Pool().granted_bytes(), 10 * kMiB);
  EXPECT_TRUE(std::move(*gone).Release().ok());
  EXPECT_TRUE(std::move(*lease).Release().ok());
  ExpectNothingIsLeft();
}

}  // namespace
}  // namespace gmb::component
