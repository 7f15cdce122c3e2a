// A keeper without its broker: how long it keeps, and for whose sake.
#include <signal.h>

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ipc/pidfd.h"
#include "tests/keeper/forked.h"
#include "tests/keeper/keeper_fixture.h"

namespace gmb::keeper {
namespace {

using Life = KeeperTest;

// Puts a slab, and a session of that process, and says so.
std::unique_ptr<Forked> BrokerFor(const LinkOptions& options, pid_t peer) {
  return std::make_unique<Forked>([=](const Forked::Say& say) {
    auto link = KeeperLink::Connect(options);
    if (!link.ok()) return say(std::string(link.status().message()));
    const base::UniqueFd slab = MemoryFile("slab");
    const base::UniqueFd pidfd = PidfdOf(peer);
    const bool put =
        Put(&*link, "slab/1", "", {slab.get()}).ok() &&
        Put(&*link, "session/1", "", {slab.get(), pidfd.get()}, 1).ok();
    say(put ? "put" : "failed");
    while (true) ::pause();
  });
}

TEST_F(Life, AllIsGivenBackAfterAWhileThoughAPeerLives) {
  StartKeeper({"--abandon-after", "200ms", "--linger=1h"});
  const auto broker = BrokerFor(AsBroker(), ::getpid());
  ASSERT_EQ(broker->Line(), "put");
  EXPECT_EQ(Status().living_peers, 1U);
  EXPECT_FALSE(Status().gives_back_in_ms.has_value());
  broker->Kill();
  EXPECT_TRUE(component::Await([&] { return Status().entries == 0; }));
  EXPECT_EQ(Status().broker, KeeperStatus::Broker::kNone);
  EXPECT_EQ(Status().fds, 0U);
}

TEST_F(Life, ItIsKeptForEverAsLongAsAPeerLives) {
  StartKeeper({"--abandon-after", "0", "--linger", "1ms"});
  Forked peer([](const auto&) {});
  const auto broker = BrokerFor(AsBroker(), peer.pid());
  ASSERT_EQ(broker->Line(), "put");
  broker->Kill();
  ASSERT_TRUE(component::Await(
      [&] { return Status().broker == KeeperStatus::Broker::kDead; }));
  EXPECT_EQ(Status().entries, 2U);
  EXPECT_FALSE(Status().gives_back_in_ms.has_value());
  peer.Kill();
  EXPECT_TRUE(component::Await([&] { return Status().entries == 0; }));
}

TEST_F(Life, ItWaitsALittleForABrokerThatIsStartedAgain) {
  StartKeeper({"--abandon-after", "2h", "--linger", "1h"});
  Forked peer([](const auto&) {});
  const auto broker = BrokerFor(AsBroker(), peer.pid());
  ASSERT_EQ(broker->Line(), "put");
  broker->Kill();
  ASSERT_TRUE(component::Await(
      [&] { return Status().broker == KeeperStatus::Broker::kDead; }));
  EXPECT_GT(Status().gives_back_in_ms.value_or(0), 3'600'000U);
  peer.Kill();
  ASSERT_TRUE(component::Await([&] { return Status().living_peers == 0; }));
  EXPECT_LE(Status().gives_back_in_ms.value_or(7'000'000), 3'600'000U);
  EXPECT_EQ(Status().entries, 2U);
  EXPECT_TRUE(KeeperLink::Connect(AsBroker()).ok());
}

// Stops it while it waits for a broker, until `late` after it would have given
// all back. Twice as long each time, where the machine is too slow for that.
class StoppedLife : public KeeperTest {
 protected:
  void StopUntil(
      std::chrono::milliseconds late,
      const std::function<void()>& meanwhile = [] {}) {
    for (std::chrono::milliseconds keeps(2000);; keeps *= 2) {
      ASSERT_LT(keeps, std::chrono::minutes(1));
      keeper_.reset();
      StartKeeper({absl::StrCat("--abandon-after=", keeps.count(), "ms"),
                   "--linger=1h"},
                  absl::StrCat("keeper", keeps.count()));
      const auto broker = BrokerFor(AsBroker(), ::getpid());
      ASSERT_EQ(broker->Line(), "put");
      broker->Kill();
      std::optional<uint64_t> left;
      ASSERT_TRUE(component::Await([&] {
        const KeeperStatus status = Status();
        left = status.gives_back_in_ms;
        return status.broker == KeeperStatus::Broker::kDead ||
               status.broker == KeeperStatus::Broker::kNone;
      }));
      const auto over = std::chrono::steady_clock::now() +
                        std::chrono::milliseconds(left.value_or(0)) + late;
      keeper_->Signal(SIGSTOP);
      meanwhile();
      while (std::chrono::steady_clock::now() < over)
        std::this_thread::sleep_until(over);
      if (!absl::StrContains(keeper_->Err(), "gives back")) break;
    }
    keeper_->Signal(SIGCONT);
  }
};

// An operator who reads that it is stopped, and has it go on, has time for a
// broker.
TEST_F(StoppedLife, LongerThanItKeepsItKeepsOn) {
  StopUntil(std::chrono::milliseconds(300));
  (void)Status();  // by its answer it has found its time over
  const auto next = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->welcome().entries, 2U) << keeper_->Err();
}

// In the very moment in which it would give all back.
TEST_F(StoppedLife, ABrokerThatHasConnectedMeanwhileIsServed) {
  std::unique_ptr<Forked> next;
  StopUntil(std::chrono::milliseconds(20), [&] {
    next = std::make_unique<Forked>([this](const Forked::Say& say) {
      say("connects");
      const auto link = KeeperLink::Connect(AsBroker());
      say(link.ok() ? absl::StrCat(link->welcome().entries)
                    : std::string(link.status().message()));
      while (true) ::pause();
    });
    ASSERT_EQ(next->Line(), "connects");
  });
  EXPECT_EQ(next->Line(), "2") << keeper_->Err();
}

TEST_F(Life, ABrokerThatLivesKeepsAllThoughNoPeerDoes) {
  StartKeeper({"--abandon-after", "1ms", "--linger", "0"});
  Forked peer([](const auto&) {});
  const auto broker = BrokerFor(AsBroker(), peer.pid());
  ASSERT_EQ(broker->Line(), "put");
  broker->Stop();
  peer.Kill();
  ASSERT_TRUE(component::Await([&] { return Status().living_peers == 0; }));
  EXPECT_EQ(Status().entries, 2U);
  EXPECT_FALSE(Status().gives_back_in_ms.has_value());
}

TEST_F(Life, ACommandDropsAllOnceTheBrokerIsDead) {
  StartKeeper();
  const auto broker = BrokerFor(AsBroker(), ::getpid());
  ASSERT_EQ(broker->Line(), "put");
  LinkOptions options = AsBroker();
  options.role = Role::kCommand;
  auto command = KeeperLink::Connect(options);
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(
      command->Ask(Kind::kDrop, "", {}, Kind::kStatusIs).status()));
  broker->Kill();
  ASSERT_TRUE(component::Await(
      [&] { return Status().broker == KeeperStatus::Broker::kDead; }));
  EXPECT_TRUE(command->Ask(Kind::kDrop, "", {}, Kind::kStatusIs).ok());
  EXPECT_EQ(Status().entries, 0U);
}

TEST_F(Life, OneForOneBrokerEndsWhenThatIsDone) {
  StartKeeper({"--once"});
  // A command is no broker.
  EXPECT_EQ(Status().broker, KeeperStatus::Broker::kNone);
  auto broker = BrokerFor(AsBroker(), ::getpid());
  ASSERT_EQ(broker->Line(), "put");
  broker->Kill();
  // Its successor has everything, and is the one that ends it.
  auto next = KeeperLink::Connect(AsBroker(kPatience));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->welcome().entries, 2U);
  EXPECT_TRUE(next->Ask(Kind::kDone, "", {}, Kind::kOk).ok());
  EXPECT_EQ(keeper_->AwaitExit(), 0);
}

// As where a broker without sessions is upgraded: a new one that hangs takes
// longer than all is kept.
TEST_F(Life, OneForOneBrokerWaitsForTheNextOneWithNothingLeft) {
  StartKeeper({"--once", "--linger", "1ms"});
  Forked peer([](const auto&) {});
  auto broker = BrokerFor(AsBroker(), peer.pid());
  ASSERT_EQ(broker->Line(), "put");
  peer.Kill();
  broker->Kill();
  ASSERT_TRUE(keeper_->AwaitErr("gives back 2 entries")) << keeper_->Err();
  EXPECT_EQ(Status().broker, KeeperStatus::Broker::kNone);
  auto next = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE(next->Ask(Kind::kDone, "", {}, Kind::kOk).ok());
  EXPECT_EQ(keeper_->AwaitExit(), 0);
  StartKeeper({"--once", "--abandon-after", "1ms"}, "nobody");
  EXPECT_EQ(keeper_->AwaitExit(), 0);
}

TEST_F(Life, ACommandThatStartsItEndsOnceItServes) {
  const auto start = [this](const std::string& name) {
    component::Program command(
        directory_.path(), name,
        {GMB_KEEPER_PROGRAM, "--socket", socket(), "--once", "--background"});
    return command.AwaitExit();
  };
  EXPECT_EQ(start("one"), 0);
  EXPECT_EQ(start("two"), 1) << "the first one has the directory";
  auto broker = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(broker.ok()) << broker.status();
  const base::UniqueFd keeper = PidfdOf(Status().pid);
  EXPECT_TRUE(broker->Ask(Kind::kDone, "", {}, Kind::kOk).ok());
  EXPECT_TRUE(component::Await([&] { return !ipc::IsAlive(keeper); }));
}

TEST_F(Life, ItEndsWhenItIsToldTo) {
  StartKeeper();
  keeper_->Signal(SIGTERM);
  EXPECT_EQ(keeper_->AwaitExit(), 0);
  EXPECT_TRUE(absl::IsUnavailable(KeeperLink::Connect(AsBroker()).status()));
}

}  // namespace
}  // namespace gmb::keeper
