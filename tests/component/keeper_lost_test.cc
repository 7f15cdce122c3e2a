// A broker whose keeper has died, or does not answer.
#include <signal.h>

#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tests/component/restart_fixture.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KeeperLostTest : public RestartFixture {
 protected:
  // With the tenant a. Ready slabs and float have 8 MiB.
  void StartBrokerOfSmallFloat() {
    BrokerOptions options = Options();
    options.devices = {"host:256MiB"};
    StartBroker(options);
    MakeTenant("a");
  }
  // A stop of a broker that detaches, whose keeper has been made to be lost:
  // clients are asked to end, and it waits for them.
  void ExpectDrained(const std::function<void()>& lose) {
    BrokerOptions detaching = Options();
    detaching.drain_deadline = "10m";
    detaching.flags.insert(detaching.flags.end(), {"--on-stop", "detach"});
    StartBroker(detaching);
    MakeTenant("a");
    std::promise<void> told;
    ClientOptions options = OptionsFor(TenantDir("a"));
    options.on_draining = [&](absl::Duration) { told.set_value(); };
    lose();
    // A keeper that is silent is found out by the first that it is to keep.
    auto client = Client::Connect(options);
    ASSERT_TRUE(client.ok()) << client.status();
    auto lease = (*client)->Acquire(3 * kMiB);
    ASSERT_TRUE(lease.ok()) << lease.status();
    ASSERT_TRUE(Await(
        [&] { return absl::StrContains(broker().Log(), " keeper_lost "); }));
    broker().program().Signal(SIGTERM);
    EXPECT_EQ(told.get_future().wait_for(kPatience), std::future_status::ready);
    EXPECT_TRUE(broker().program().IsRunning());
    EXPECT_TRUE(std::move(*lease).Release().ok());
    client->reset();
    EXPECT_EQ(broker().program().AwaitExit(), 0);
    EXPECT_THAT(broker().Log(),
                AllOf(HasSubstr(" not_detached "), HasSubstr("it drains"),
                      Not(HasSubstr(" detached "))));
  }
};

TEST_F(KeeperLostTest, AStopThatWouldLeaveAllToADeadOneDrains) {
  ExpectDrained([&] { KillKeeper(); });
}

// The broker tries to fill it meanwhile.
TEST_F(KeeperLostTest, AStopThatWouldLeaveAllToASilentOneDrains) {
  ExpectDrained([&] { keeper_->Signal(SIGSTOP); });
  keeper_->Signal(SIGCONT);
}

// It has its duplicates of what is destroyed, so that the bytes do not come
// back: ready slabs stay for those who ask for their size.
TEST_F(KeeperLostTest, ASilentOneTakesNoReadySlabFromAGuarantee) {
  StartBrokerOfSmallFloat();
  const auto client = ConnectAs("a");
  std::vector<Lease> leases;
  const auto acquire = [&](uint64_t bytes) {
    auto lease = client->Acquire(bytes);
    ASSERT_TRUE(lease.ok()) << lease.status();
    leases.push_back(*std::move(lease));
  };
  acquire(4 * kMiB);
  ASSERT_TRUE(Await([&] { return Pool().ready_bytes() == 240 * kMiB; }));
  keeper_->Signal(SIGSTOP);
  acquire(4 * kMiB);
  // Less float than there should be. On a busy machine that is just being
  // filled, and this one waits for the keeper.
  auto third = std::async(std::launch::async, [&] {
    return client->Acquire(4 * kMiB, WaitFor(absl::FromChrono(kPatience)));
  });
  ASSERT_TRUE(Await(
      [&] { return absl::StrContains(broker().Log(), " keeper_lost "); }));
  // Two of them would refill it.
  const absl::Time looked = absl::Now();
  ASSERT_TRUE(Await([&] {
    EXPECT_GE(Pool().ready_bytes(), 232 * kMiB);
    return absl::Now() - looked > absl::Seconds(3);
  }));
  acquire(64 * kMiB);
  keeper_->Signal(SIGCONT);
  const auto served = third.get();
  EXPECT_TRUE(served.ok()) << served.status();
  EXPECT_TRUE(Await([&] { return Pool().missing_bytes() == 0; }));
  leases.clear();
}

TEST_F(KeeperLostTest, ARefusalNamesASilentOne) {
  StartBrokerOfSmallFloat();
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(4 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(Await([&] { return Pool().ready_bytes() == 240 * kMiB; }));
  keeper_->Signal(SIGSTOP);
  auto second = client->Acquire(4 * kMiB);
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE(Await(
      [&] { return absl::StrContains(broker().Log(), " keeper_lost "); }));
  // Until the float has no slab of a size that is not ready.
  absl::Status refused;
  std::vector<Lease> small;
  while (refused.ok() && small.size() < 64) {
    auto more = client->Acquire(2 * kMiB);
    refused = more.status();
    if (more.ok()) small.push_back(*std::move(more));
  }
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("keeper does not answer"),
                                       Not(HasSubstr("outside the broker"))));
  // One that waits is served when it goes on.
  auto waits = std::async(std::launch::async, [&] {
    return client->Acquire(2 * kMiB, WaitFor(absl::FromChrono(kPatience)));
  });
  ASSERT_TRUE(Await(
      [&] { return absl::StrContains(broker().Log(), " acquire_waiting "); }));
  keeper_->Signal(SIGCONT);
  const auto late = waits.get();
  EXPECT_TRUE(late.ok()) << late.status();
}

// The next broker would find nobody there, or another keeper.
TEST_F(KeeperLostTest, OneWhoseDirectoryIsMadeAnewIsLeftForTheNextOne) {
  StartBroker(Options());
  MakeTenant("a");
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  Fill(*lease, 5);
  const std::unique_ptr<Program> first = std::move(keeper_);
  std::filesystem::remove_all(
      std::filesystem::path(KeeperSocket()).parent_path());
  ASSERT_TRUE(Await(
      [&] { return absl::StrContains(broker().Log(), " keeper_lost "); }));
  EXPECT_THAT(Gmb({"status"}).out, HasSubstr("the directory was removed"));
  auto meanwhile = client->Acquire(6 * kMiB);
  ASSERT_TRUE(meanwhile.ok()) << meanwhile.status();
  Fill(*meanwhile, 6);
  StartKeeper();
  ASSERT_TRUE(Await(
      [&] { return absl::StrContains(broker().Log(), " keeper_found "); }));
  EXPECT_THAT(Gmb({"status"}).out, Not(HasSubstr("keeper")));
  EXPECT_TRUE(first->IsRunning());
  // The first one has no slab any more.
  EXPECT_TRUE(std::move(*meanwhile).Release().ok());
  ASSERT_TRUE(Await([&] {
    return Pool().granted_bytes() == 10 * kMiB &&
           Pool().unreturned_bytes() + Pool().missing_bytes() == 0;
  }));
  auto rest = client->Acquire(84 * kMiB, WaitFor(absl::Seconds(60)));
  ASSERT_TRUE(rest.ok()) << rest.status();
  KillBroker();
  StartBroker(Options());
  EXPECT_EQ(Status().sessions(), 1U);
  EXPECT_TRUE(Holds(*lease, 5));
}

// It is put back where it was.
TEST_F(KeeperLostTest, OneWhoseDirectoryIsBackHasEverything) {
  StartBroker(Options());
  const std::filesystem::path place =
      std::filesystem::path(KeeperSocket()).parent_path();
  std::filesystem::rename(place, Directory() + "/elsewhere");
  ASSERT_TRUE(Await(
      [&] { return absl::StrContains(broker().Log(), " keeper_lost "); }));
  std::filesystem::rename(Directory() + "/elsewhere", place);
  ASSERT_TRUE(Await(
      [&] { return absl::StrContains(broker().Log(), " keeper_found "); }));
  MakeTenant("a");
  const auto client = ConnectAs("a");
  KillBroker();
  StartBroker(Options());
  EXPECT_EQ(Status().sessions(), 1U);
}

}  // namespace
}  // namespace gmb::component
