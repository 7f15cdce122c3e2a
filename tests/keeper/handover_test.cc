// A real keeper and real brokers that die, stop and compete.
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "absl/strings/match.h"
#include "ipc/listener.h"
#include "tests/keeper/forked.h"
#include "tests/keeper/keeper_fixture.h"

namespace gmb::keeper {
namespace {

using ::testing::HasSubstr;
using Hand = KeeperTest;

// Contents that differ in every page.
std::string Pattern(int seed) {
  std::string bytes(size_t{1} << 20, '\0');
  uint32_t state = static_cast<uint32_t>(seed) * 2654435761U + 1;
  for (char& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

// Puts two slabs and a journal, says so, and lives on.
void BeBroker(const LinkOptions& options, const Forked::Say& say) {
  auto link = KeeperLink::Connect(options);
  if (!link.ok()) return say(std::string(link.status().message()));
  for (int i = 1; i <= 2; ++i) {
    const base::UniqueFd slab = MemoryFile(Pattern(i));
    const absl::Status put = Put(&*link, absl::StrCat("slab/", i),
                                 absl::StrCat("record ", i), {slab.get()});
    if (!put.ok()) return say(std::string(put.message()));
  }
  const base::UniqueFd journal = MemoryFile(Pattern(3));
  const absl::Status put = Put(&*link, "journal", "", {journal.get()});
  say(put.ok() ? "put" : std::string(put.message()));
  while (true) ::pause();
}

void ExpectAll(KeeperLink* link) {
  auto all = FetchAll(link);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 3U);
  const char* const keys[] = {"slab/1", "slab/2", "journal"};
  const char* const records[] = {"record 1", "record 2", ""};
  for (int i = 0; i < 3; ++i) {
    const Fetched& kept = all->at(i);
    EXPECT_EQ(kept.head.key, keys[i]);
    EXPECT_EQ(kept.head.record, records[i]);
    ASSERT_EQ(kept.fds.size(), 1U);
    EXPECT_TRUE(BytesOf(kept.fds[0].get()) == Pattern(i + 1)) << keys[i];
  }
}

TEST_F(Hand, TheNextBrokerGetsEveryFdOfOneThatWasKilled) {
  StartKeeper();
  Forked old([&](const auto& say) { BeBroker(AsBroker(), say); });
  ASSERT_EQ(old.Line(), "put");
  old.Signal(SIGKILL);
  auto link = KeeperLink::Connect(AsBroker(kPatience));
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_EQ(link->welcome().entries, 3U);
  EXPECT_EQ(link->welcome().fds, 3U);
  ExpectAll(&*link);
  // And keeps them for the one after it.
  ExpectAll(&*link);
}

TEST_F(Hand, AStoppedBrokerIsNotReplaced) {
  StartKeeper();
  Forked old([&](const auto& say) { BeBroker(AsBroker(), say); });
  ASSERT_EQ(old.Line(), "put");
  old.Stop();
  const auto refused = KeeperLink::Connect(AsBroker());
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(refused.status().message(),
              HasSubstr(absl::StrCat("another broker is served by this "
                                     "keeper: pid ",
                                     old.pid())));
  EXPECT_EQ(Status().broker_pid, old.pid());
  old.Kill();
  auto link = KeeperLink::Connect(AsBroker(kPatience));
  ASSERT_TRUE(link.ok()) << link.status();
  ExpectAll(&*link);
}

TEST_F(Hand, AHangUpIsNoDeath) {
  StartKeeper();
  Forked old([&](const auto& say) {
    {
      auto link = KeeperLink::Connect(AsBroker());
      const base::UniqueFd slab = MemoryFile("slab");
      say(link.ok() && Put(&*link, "slab/1", "", {slab.get()}).ok() ? "put"
                                                                    : "failed");
    }
    say("hung up");
  });
  ASSERT_EQ(old.Line(), "put");
  ASSERT_EQ(old.Line(), "hung up");
  ASSERT_TRUE(component::Await(
      [&] { return Status().broker == KeeperStatus::Broker::kHungUp; }));
  const auto refused = KeeperLink::Connect(AsBroker());
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(refused.status().message(), HasSubstr("still lives"));
  EXPECT_EQ(Status().entries, 1U);
  // One that waits already is served at the death.
  auto waiting = ipc::SeqpacketSocket::Connect(socket(), kPatience);
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  const auto challenge = Decode(waiting->Receive(kPatience)->bytes);
  const Hello hello{kOldestVersion, kNewestVersion, Role::kBroker, true,
                    challenge->body};
  const std::string packet = Encode(Frame{Kind::kHello, 1, Encode(hello)});
  ASSERT_TRUE(waiting->Send(packet, {}, true, kPatience).ok());
  EXPECT_EQ(Decode(waiting->Receive(kPatience)->bytes)->kind, Kind::kWait);
  old.Kill();
  EXPECT_EQ(Decode(waiting->Receive(kPatience)->bytes)->kind, Kind::kWelcome);
}

TEST_F(Hand, ABrokerIsServedOnOneConnection) {
  StartKeeper();
  const auto first = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(
      absl::IsFailedPrecondition(KeeperLink::Connect(AsBroker()).status()));
}

TEST_F(Hand, ABrokerThatHungUpMayComeBackItself) {
  StartKeeper();
  {
    auto link = KeeperLink::Connect(AsBroker());
    ASSERT_TRUE(link.ok()) << link.status();
    const base::UniqueFd slab = MemoryFile("slab");
    ASSERT_TRUE(Put(&*link, "slab/1", "", {slab.get()}).ok());
  }
  auto again = KeeperLink::Connect(AsBroker(kPatience));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->welcome().entries, 1U);
}

TEST_F(Hand, OneThatWaitsIsServedWhenTheLastOneDies) {
  StartKeeper();
  Forked old([&](const auto& say) { BeBroker(AsBroker(), say); });
  ASSERT_EQ(old.Line(), "put");
  Forked next([&](const auto& say) {
    auto link = KeeperLink::Connect(AsBroker(kPatience));
    if (!link.ok()) return say(std::string(link.status().message()));
    auto all = FetchAll(&*link);
    say(absl::StrCat("served ", all.ok() ? all->size() : 0));
    ::pause();
  });
  // One that gives up says whom it has waited for.
  const auto late = KeeperLink::Connect(AsBroker(absl::Milliseconds(1)));
  EXPECT_THAT(late.status().message(),
              HasSubstr(absl::StrCat("pid ", old.pid())));
  EXPECT_EQ(Status().broker_pid, old.pid());
  old.Kill();
  EXPECT_EQ(next.Line(), "served 3");
  EXPECT_EQ(Status().broker_pid, next.pid());
}

// As while the keeper is replaced.
TEST_F(Hand, OneThatIsHungUpOnTriesAgainForAWhile) {
  ASSERT_EQ(::mkdir(place().c_str(), 0700), 0);
  Forked deaf([&](const auto& say) {
    {
      auto listener =
          ipc::Listener::Listen(socket(), 0600, ipc::SocketType::kSeqpacket);
      say(listener.ok() ? "listens" : std::string(listener.status().message()));
      pollfd entry{.fd = listener->fd(), .events = POLLIN, .revents = 0};
      (void)::poll(&entry, 1, -1);
      (void)listener->TryAccept();
    }
    say("has hung up");
  });
  ASSERT_EQ(deaf.Line(), "listens");
  Forked broker([&](const auto& say) {
    LinkOptions options = AsBroker();
    options.wait_for_listener = kPatience;
    auto link = KeeperLink::Connect(options);
    say(link.ok() ? "served" : std::string(link.status().message()));
  });
  ASSERT_EQ(deaf.Line(), "has hung up");
  StartKeeper();
  EXPECT_EQ(broker.Line(), "served");
}

TEST_F(Hand, OfManyThatAdoptAtOnceOneIsServed) {
  StartKeeper();
  Forked old([&](const auto& say) { BeBroker(AsBroker(), say); });
  ASSERT_EQ(old.Line(), "put");
  old.Kill();
  ASSERT_TRUE(component::Await(
      [&] { return Status().broker == KeeperStatus::Broker::kDead; }));
  std::vector<std::unique_ptr<Forked>> adopters;
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  base::UniqueFd starts(gate[0]);
  base::UniqueFd holds(gate[1]);
  for (int i = 0; i < 6; ++i) {
    adopters.push_back(std::make_unique<Forked>([&](const Forked::Say& say) {
      holds.reset();
      char byte = 0;
      (void)!::read(starts.get(), &byte, 1);  // until the test lets go
      auto link = KeeperLink::Connect(AsBroker());
      if (!link.ok()) return say("refused");
      auto all = FetchAll(&*link);
      say(absl::StrCat("served ", all.ok() ? all->size() : 0));
      ::pause();
    }));
  }
  holds.reset();
  int served = 0;
  for (const auto& adopter : adopters) {
    const std::string line = adopter->Line();
    EXPECT_TRUE(line == "refused" || line == "served 3") << line;
    served += line == "served 3" ? 1 : 0;
  }
  EXPECT_EQ(served, 1);
}

TEST_F(Hand, ABrokerThatIsDoneLeavesNothing) {
  StartKeeper();
  auto link = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(link.ok()) << link.status();
  const base::UniqueFd slab = MemoryFile("slab");
  ASSERT_TRUE(Put(&*link, "slab/1", "", {slab.get()}).ok());
  EXPECT_TRUE(link->Ask(Kind::kDone, "", {}, Kind::kOk).ok());
  EXPECT_EQ(Status().entries, 0U);
  EXPECT_EQ(Status().broker, KeeperStatus::Broker::kNone);
  // It is not served any more, and another one is, though it lives.
  EXPECT_FALSE(Put(&*link, "slab/2", "", {slab.get()}).ok());
  Forked next([&](const auto& say) {
    say(KeeperLink::Connect(AsBroker()).ok() ? "served" : "refused");
  });
  EXPECT_EQ(next.Line(), "served");
}

TEST_F(Hand, TheMemoryOfARemovedEntryIsGone) {
  StartKeeper();
  auto link = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(link.ok()) << link.status();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const base::UniqueFd reader(ends[0]);
  base::UniqueFd writer(ends[1]);
  ASSERT_TRUE(Put(&*link, "slab/1", "", {writer.get()}).ok());
  writer.reset();
  pollfd entry{.fd = reader.get(), .events = 0, .revents = 0};
  EXPECT_EQ(::poll(&entry, 1, 0), 0) << "the keeper has it";
  ASSERT_TRUE(Remove(&*link, "slab/1").ok());
  EXPECT_EQ(::poll(&entry, 1, 60'000), 1) << "the keeper has let go";
  EXPECT_TRUE(absl::IsNotFound(Remove(&*link, "slab/1")));
}

}  // namespace
}  // namespace gmb::keeper
