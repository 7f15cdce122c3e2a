// A keeper that lives is replaced, under load, and with a death of either at each
// step: its broker goes on, and the next broker has everything.
#include "keeper/succession.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "keeper/server.h"
#include "keeper/start.h"
#include "tests/keeper/forked.h"
#include "tests/keeper/keeper_fixture.h"

namespace gmb::keeper {
namespace {

using ::testing::HasSubstr;

constexpr Shelf::Limits kLimits = {.entries = 1000, .fds = 1000};

class SuccessionTest : public KeeperTest {
 protected:
  [[nodiscard]] LinkOptions AsSuccessor() const {
    LinkOptions options = AsBroker();
    options.role = Role::kSuccessor;
    return options;
  }
  // The one that listens ends well, and the other one listens.
  void Replace(const std::string& name,
               const std::vector<std::string>& wrapper = {},
               const std::vector<std::string>& options = {}) {
    const std::unique_ptr<component::Program> old = std::move(keeper_);
    std::vector<std::string> argv = wrapper;
    argv.insert(argv.end(),
                {GMB_KEEPER_PROGRAM, "--socket", socket(), "--replace"});
    argv.insert(argv.end(), options.begin(), options.end());
    StartAs(argv, name);
    EXPECT_EQ(old->AwaitExit(), 0) << old->Err();
    EXPECT_EQ(Status().pid, keeper_->pid());
  }
  // One that serves nobody else for so long while it is replaced.
  [[nodiscard]] std::unique_ptr<Forked> KeeperWithPatience(
      absl::Duration hand_over) const {
    return std::make_unique<Forked>([=, this](const auto& say) {
      const base::UniqueFd never(::eventfd(0, EFD_CLOEXEC));
      auto server =
          StartServer(socket(),
                      {.limits = kLimits,
                       .hand_over = absl::ToChronoMilliseconds(hand_over)},
                      never.get());
      say(server.ok() ? "listens" : std::string(server.status().message()));
      if (server.ok()) (void)(*server)->Run();
    });
  }
  // The keeper serves nobody, or did until it lost its patience.
  [[nodiscard]] absl::StatusOr<Succession> AllTaken() const {
    auto succession = Succession::Begin(AsSuccessor());
    while (succession.ok() && !succession->TakeAll(kLimits).ok())
      succession = Succession::Begin(AsSuccessor());  // it was too slow
    return succession;
  }
  // This process's, with entries "slab/1" to "slab/`count`" and a session.
  KeeperLink Broker(int count) {
    auto link = KeeperLink::Connect(AsBroker());
    EXPECT_TRUE(link.ok()) << link.status();
    for (int i = 1; i <= count; ++i) PutSlab(&*link, i);
    const base::UniqueFd self = PidfdOf(::getpid());
    EXPECT_TRUE(Put(&*link, "session/1", "", {self.get()}, 0).ok());
    return *std::move(link);
  }
  static void PutSlab(KeeperLink* link, int number) {
    const base::UniqueFd slab = MemoryFile(absl::StrCat("slab ", number));
    const absl::Status put = Put(link, absl::StrCat("slab/", number),
                                 absl::StrCat(number), {slab.get()});
    EXPECT_TRUE(put.ok()) << put;
  }
  // As Broker has left it, and slabs that were put later.
  static void ExpectAll(KeeperLink* link, int count, int later) {
    auto all = FetchAll(link);
    ASSERT_TRUE(all.ok()) << all.status();
    ASSERT_EQ(all->size(), static_cast<size_t>(count + 1 + later));
    for (int i = 0; i < count + 1 + later; ++i) {
      const Fetched& kept = all->at(i);
      if (i == count) {
        EXPECT_EQ(kept.head.key, "session/1");
        continue;
      }
      const int number = i < count ? i + 1 : i;
      EXPECT_EQ(kept.head.key, absl::StrCat("slab/", number));
      EXPECT_EQ(kept.head.record, absl::StrCat(number));
      EXPECT_EQ(BytesOf(kept.fds.at(0).get()), absl::StrCat("slab ", number));
    }
  }
};

TEST_F(SuccessionTest, TheNextKeeperHasAllAndItsBrokerNoticesNothing) {
  StartKeeper();
  KeeperLink broker = Broker(80);  // pages
  for (int i = 0; i < 3; ++i) {
    Replace(absl::StrCat("next-", i));
    PutSlab(&broker, 81 + i);
    ExpectAll(&broker, 80, i + 1);
  }
  EXPECT_EQ(Status().living_peers, 1U);
  EXPECT_TRUE(Remove(&broker, "session/1").ok());
  EXPECT_EQ(Status().living_peers, 0U);
  // It is still this process that is served, and no other one.
  Forked other([&](const auto& say) {
    say(std::string(KeeperLink::Connect(AsBroker()).status().message()));
  });
  EXPECT_THAT(other.Line(), HasSubstr(absl::StrCat("pid ", ::getpid())));
  // Nor is one told to go while somebody waits for this one's death.
  Forked waits([&](const auto& say) {
    (void)KeeperLink::Connect(AsBroker(kPatience));
    say("served");
  });
  ASSERT_TRUE(component::Await([&] {
    auto successor = Succession::Begin(AsSuccessor());
    return successor.ok() &&
           absl::IsFailedPrecondition(successor->TakeAll(kLimits).status());
  }));
  PutSlab(&broker, 90);
}

TEST_F(SuccessionTest, WhatADeadBrokerHasLeftGoesOnToTheNextKeeper) {
  StartKeeper({"--linger", "1h"});
  Forked old([&](const auto& say) {
    KeeperLink link = Broker(3);
    say("put");
    while (true) ::pause();
  });
  ASSERT_EQ(old.Line(), "put");
  Replace("before", {}, {"--linger", "1h"});
  old.Kill();
  ASSERT_TRUE(component::Await(
      [&] { return Status().broker == KeeperStatus::Broker::kDead; }));
  // Shorter than --linger, as no peer lives.
  Replace("after", {}, {"--linger", "1h", "--abandon-after", "2h"});
  EXPECT_EQ(Status().broker, KeeperStatus::Broker::kDead);
  EXPECT_LE(Status().gives_back_in_ms.value_or(7'000'000), 3'600'000U);
  auto next = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(next.ok()) << next.status();
  ExpectAll(&*next, 3, 0);
}

// The manager would otherwise start another one, or end them with the old one.
TEST_F(SuccessionTest, AServiceManagerIsToldEachTimeOrNothingHappens) {
  const std::string path = directory_.File("notify");
  base::UniqueFd manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(manager.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
            0);
  const auto told = [&] {
    std::string line(100, '\0');
    pollfd entry{.fd = manager.get(), .events = POLLIN, .revents = 0};
    (void)::poll(&entry, 1, absl::ToInt64Milliseconds(kPatience));
    line.resize(static_cast<size_t>(std::max<ssize_t>(
        0, ::recv(manager.get(), line.data(), line.size(), MSG_DONTWAIT))));
    return line;
  };
  const std::vector<std::string> told_where = {"/usr/bin/env",
                                               "NOTIFY_SOCKET=" + path};
  StartAs(
      {told_where[0], told_where[1], GMB_KEEPER_PROGRAM, "--socket", socket()});
  EXPECT_EQ(told(), "READY=1");
  KeeperLink broker = Broker(1);
  for (const char* const name : {"first", "second"}) {
    Replace(name, told_where);
    EXPECT_EQ(told(), absl::StrCat("MAINPID=", keeper_->pid()));
    EXPECT_EQ(told(), "READY=1");
  }
  // One that could not say who follows itself; and a manager that is away.
  const auto refused = [&](const std::string& name,
                           std::vector<std::string> argv) {
    argv.insert(argv.end(),
                {GMB_KEEPER_PROGRAM, "--socket", socket(), "--replace"});
    component::Program next(directory_.path(), name, argv);
    EXPECT_EQ(next.AwaitExit(), 1);
    EXPECT_EQ(Status().pid, keeper_->pid());
    return next.Err();
  };
  EXPECT_THAT(refused("deaf", {"/usr/bin/env"}), HasSubstr("NotifyAccess="));
  manager.reset();
  (void)refused("away", told_where);
  PutSlab(&broker, 2);
  ExpectAll(&broker, 1, 1);
}

TEST_F(SuccessionTest, OneForOneBrokerWaitsForItThoughTheOtherHadOne) {
  StartKeeper();
  {
    KeeperLink broker = Broker(1);
    EXPECT_TRUE(broker.Ask(Kind::kDone, "", {}, Kind::kOk).ok());
  }
  Replace("next", {}, {"--once"});
  KeeperLink broker = Broker(1);
  ExpectAll(&broker, 1, 0);
  EXPECT_TRUE(broker.Ask(Kind::kDone, "", {}, Kind::kOk).ok());
  EXPECT_EQ(keeper_->AwaitExit(), 0);
}

TEST_F(SuccessionTest, WhereNoneLivesItStartsAsUsual) {
  StartKeeper({"--replace"});
  KeeperLink broker = Broker(1);
  ExpectAll(&broker, 1, 0);
}

TEST_F(SuccessionTest, OneThatDiesAtAnyStepChangesNothing) {
  StartKeeper();
  KeeperLink broker = Broker(3);
  for (int step = 0; step < 2; ++step) {
    Forked successor([&](const auto& say) {
      auto succession = Succession::Begin(AsSuccessor());
      if (step == 1) succession = AllTaken();
      say("there");
    });
    ASSERT_EQ(successor.Line(), "there");
    successor.Kill();
    PutSlab(&broker, 4 + step);
  }
  ExpectAll(&broker, 3, 2);
  EXPECT_TRUE(keeper_->AwaitErr("has not taken this keeper's place"));
  EXPECT_EQ(Status().pid, keeper_->pid());
  // One with too little room does not begin.
  auto small = Succession::Begin(AsSuccessor());
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_TRUE(absl::IsResourceExhausted(
      small->TakeAll({.entries = 5, .fds = 1000}).status()));
  PutSlab(&broker, 6);
}

TEST_F(SuccessionTest, TheOldOneMayDieOnceAllIsTaken) {
  // One that waits for its successor for long enough, also on a slow machine.
  const auto old = KeeperWithPatience(kPatience);
  ASSERT_EQ(old->Line(), "listens");
  KeeperLink broker = Broker(3);
  Forked successor([&](const auto& say) {
    auto succession = Succession::Begin(AsSuccessor());
    auto all = succession->TakeAll(kLimits);
    auto place = KeeperPlace::Open(socket(), /*make=*/false);
    const base::UniqueFd never(::eventfd(0, EFD_CLOEXEC));
    auto server = Server::Inherit(*std::move(place), {.limits = kLimits},
                                  never.get(), *std::move(all));
    old->Signal(SIGKILL);
    const absl::Status mine = succession->Commit();
    if (!mine.ok() || !(*server)->Claim().ok())
      return say(std::string(mine.message()));
    say("mine");
    (void)(*server)->Run();
  });
  ASSERT_EQ(successor.Line(), "mine");
  PutSlab(&broker, 4);
  ExpectAll(&broker, 3, 1);
  EXPECT_EQ(Status().pid, successor.pid());
}

TEST_F(SuccessionTest, OneThatAsksForEverHoldsNobodyUp) {
  const auto keeper = KeeperWithPatience(absl::Milliseconds(50));
  ASSERT_EQ(keeper->Line(), "listens");
  KeeperLink broker = Broker(3);
  Forked greedy([&](const auto& say) {
    auto link = KeeperLink::Connect(AsSuccessor());
    bool answers =
        link->Ask(Kind::kHandOver, EncodeHandOver(false), {}, Kind::kOk).ok();
    say(answers ? "asks" : "refused");
    while (answers)
      answers = link->Ask(Kind::kFetch, EncodeAfter(0), {}, Kind::kPage).ok();
    say("over");
  });
  ASSERT_EQ(greedy.Line(), "asks");
  PutSlab(&broker, 4);
  ExpectAll(&broker, 3, 1);
  EXPECT_EQ(greedy.Line(), "over");
}

// The entries that were taken are old by then: the broker was served in
// between.
TEST_F(SuccessionTest, OneThatTakesTooLongHasNothingThoughTheOtherDies) {
  StartKeeper();
  KeeperLink broker = Broker(3);
  Forked slow([&](const auto& say) {
    auto succession = AllTaken();
    const base::UniqueFd old = PidfdOf(keeper_->pid());
    say("taken");
    pollfd dies{.fd = old.get(), .events = POLLIN, .revents = 0};
    while (::poll(&dies, 1, -1) != 1) {
    }
    say(succession->Commit().ok() ? "mine" : "not mine");
  });
  ASSERT_EQ(slow.Line(), "taken");
  PutSlab(&broker, 4);  // answered once the keeper goes on
  ExpectAll(&broker, 3, 1);
  keeper_->Signal(SIGKILL);
  EXPECT_EQ(slow.Line(), "not mine");
}

}  // namespace
}  // namespace gmb::keeper
