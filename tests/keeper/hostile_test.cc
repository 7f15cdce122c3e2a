// The peers that may reach a keeper, and the bytes that they may send.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>
#include <random>

#include "ipc/seqpacket.h"
#include "keeper/link/keeper_place.h"
#include "keeper/wire/frame.h"
#include "tests/attack/lingering_socket.h"
#include "tests/keeper/forked.h"
#include "tests/keeper/keeper_fixture.h"

namespace gmb::keeper {
namespace {

using ::testing::HasSubstr;
using Hostile = KeeperTest;

constexpr uid_t kNobody = 65534;

// A connection that has only been made.
absl::StatusOr<ipc::SeqpacketSocket> Bare(const std::string& path) {
  return ipc::SeqpacketSocket::Connect(path, kPatience);
}

TEST_F(Hostile, AnotherUserIsNotServed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody else";
  StartKeeper();
  // As if somebody had opened the doors.
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(place().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(socket().c_str(), 0666), 0);
  Forked stranger([&](const auto& say) {
    if (::setuid(kNobody) != 0) return say("not another user");
    auto socket_of_keeper = Bare(socket());
    if (!socket_of_keeper.ok()) return say("not connected");
    const auto packet = socket_of_keeper->Receive(kPatience);
    const auto frame = Decode(packet.ok() ? packet->bytes : "");
    if (!frame.ok() || frame->kind != Kind::kRefused) return say("greeted");
    say(std::string(DecodeRefusal(frame->body).message()));
    say(socket_of_keeper->AwaitHangUp(kPatience) ? "hung up" : "goes on");
  });
  EXPECT_THAT(stranger.Line(), HasSubstr("instead of uid 65534"));
  EXPECT_EQ(stranger.Line(), "hung up");
}

TEST_F(Hostile, AnOpenDirectoryIsNoKeepers) {
  StartKeeper();
  ASSERT_EQ(::chmod(place().c_str(), 0750), 0);
  const auto link = KeeperLink::Connect(AsBroker());
  EXPECT_TRUE(absl::IsFailedPrecondition(link.status()));
  EXPECT_THAT(link.status().message(), HasSubstr("chmod 0700"));
}

// To close these to others would harm all.
TEST_F(Hostile, NobodyIsToldToCloseADirectoryThatIsForAll) {
  const std::string sticky = directory_.File("sticky");
  ASSERT_EQ(::mkdir(sticky.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(sticky.c_str(), 01777), 0);
  for (const std::string& path : {sticky + "/k.sock", std::string("/k.sock")}) {
    LinkOptions options = AsBroker();
    options.socket = path;
    const auto link = KeeperLink::Connect(options);
    EXPECT_TRUE(absl::IsFailedPrecondition(link.status())) << link.status();
    EXPECT_THAT(link.status().message(), HasSubstr("a directory of its own"));
    EXPECT_THAT(link.status().message(), ::testing::Not(HasSubstr("chmod")));
  }
}

TEST_F(Hostile, ADirectoryThatWasSwappedForALinkIsNotFollowed) {
  StartKeeper();
  const std::string moved = directory_.File("moved");
  ASSERT_EQ(::rename(place().c_str(), moved.c_str()), 0);
  ASSERT_EQ(::symlink(moved.c_str(), place().c_str()), 0);
  const auto link = KeeperLink::Connect(AsBroker());
  EXPECT_TRUE(absl::IsFailedPrecondition(link.status())) << link.status();
  EXPECT_THAT(link.status().message(), HasSubstr("symbolic link"));
  // Nor by a keeper that starts.
  component::Program second(directory_.path(), "second",
                            {GMB_KEEPER_PROGRAM, "--socket", socket()});
  EXPECT_EQ(second.AwaitExit(), 1);
  EXPECT_THAT(second.Err(), HasSubstr("symbolic link"));
}

TEST_F(Hostile, OneKeeperADirectory) {
  StartKeeper();
  component::Program second(
      directory_.path(), "second",
      {GMB_KEEPER_PROGRAM, "--socket", place() + "/other.sock"});
  EXPECT_EQ(second.AwaitExit(), 1);
  EXPECT_THAT(second.Err(), HasSubstr("another keeper"));
  EXPECT_TRUE(KeeperLink::Connect(AsBroker()).ok());
}

// Nobody of the same user takes a slab out of it.
TEST_F(Hostile, ItsFdsCannotBeTakenByAProcessOfItsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be an ordinary user";
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
  Forked user([&](const auto& say) {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)
      return say("not another user");
    component::Program keeper(directory_.path(), "its",
                              {GMB_KEEPER_PROGRAM, "--socket", socket()});
    if (!keeper.AwaitErr("listens")) return say(keeper.Err());
    const base::UniqueFd pidfd = PidfdOf(keeper.pid());
    const auto taken = ::syscall(SYS_pidfd_getfd, pidfd.get(), 2, 0);
    say(taken < 0 && errno == EPERM ? "refused" : "taken");
    // Of a process that is dumpable it can, else this test says nothing.
    const component::Program other(directory_.path(), "other",
                                   {"/bin/sleep", "600"});
    const base::UniqueFd its = PidfdOf(other.pid());
    // Once it is the program, and no copy of this process any more.
    const bool can = component::Await(
        [&] { return ::syscall(SYS_pidfd_getfd, its.get(), 2, 0) >= 0; },
        std::chrono::seconds(10));
    say(can ? "taken" : "refused");
  });
  EXPECT_EQ(user.Line(), "refused");
  if (user.Line() != "taken") GTEST_SKIP() << "this machine refuses all of it";
}

TEST_F(Hostile, ABrokerThatGreetsForAnotherProcessIsNotServed) {
  StartKeeper();
  auto connection = Bare(socket());
  ASSERT_TRUE(connection.ok()) << connection.status();
  Forked other([&](const auto& say) {
    // Its connection, and its pid, are its parent's.
    const auto packet = connection->Receive(kPatience);
    const auto challenge = Decode(packet.ok() ? packet->bytes : "");
    if (!challenge.ok()) return say("no challenge");
    const Hello hello{kOldestVersion, kNewestVersion, Role::kBroker, false,
                      challenge->body};
    (void)connection->Send(Encode(Frame{Kind::kHello, 1, Encode(hello)}), {},
                           true, kPatience);
    say(connection->AwaitHangUp(kPatience) ? "hung up" : "served");
  });
  EXPECT_EQ(other.Line(), "hung up");
}

TEST_F(Hostile, AnUnknownVersionIsToldWhichThereAre) {
  StartKeeper();
  auto connection = Bare(socket());
  ASSERT_TRUE(connection.ok()) << connection.status();
  const auto challenge = Decode(connection->Receive(kPatience)->bytes);
  const Hello hello{kNewestVersion + 1, kNewestVersion + 3, Role::kBroker,
                    false, challenge->body};
  ASSERT_TRUE(connection
                  ->Send(Encode(Frame{Kind::kHello, 1, Encode(hello)}), {},
                         true, kPatience)
                  .ok());
  const auto answer = Decode(connection->Receive(kPatience)->bytes);
  ASSERT_EQ(answer->kind, Kind::kRefused);
  EXPECT_THAT(DecodeRefusal(answer->body).message(),
              HasSubstr("versions 1 to 1"));
}

TEST_F(Hostile, GarbageEndsAConnectionAndNothingElse) {
  StartKeeper();
  auto broker = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(broker.ok()) << broker.status();
  const base::UniqueFd slab = MemoryFile("slab");
  ASSERT_TRUE(Put(&*broker, "slab/1", "", {slab.get()}).ok());
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    auto connection = Bare(socket());
    ASSERT_TRUE(connection.ok()) << connection.status();
    std::string bytes =
        random() % 2 == 0
            ? std::string(1 + random() % 300, static_cast<char>(random()))
            : Encode(Frame{static_cast<Kind>(random() % 80), 1,
                           std::string(random() % 60, 'x')});
    if (random() % 2 == 0) bytes[random() % bytes.size()] ^= 1;
    (void)connection->TrySend(bytes, {}, random() % 2 == 0);
    EXPECT_TRUE(connection->AwaitHangUp(kPatience));
  }
  // The broker's own garbage costs it its connection, and nothing of its own.
  EXPECT_FALSE(broker->Ask(Kind::kPut, "garbage", {}, Kind::kOk).ok());
  EXPECT_FALSE(broker->Ask(Kind::kDrop, "", {}, Kind::kOk).ok());
  EXPECT_TRUE(component::Await([&] { return broker->HasHungUp(); }));
  EXPECT_EQ(Status().entries, 1U);
}

TEST_F(Hostile, ManyConnectionsMakeRoomForEachOther) {
  StartKeeper();
  auto broker = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(broker.ok()) << broker.status();
  std::vector<ipc::SeqpacketSocket> flood;
  for (int i = 0; i < 100; ++i) {
    auto connection = Bare(socket());
    ASSERT_TRUE(connection.ok()) << connection.status();
    flood.push_back(*std::move(connection));
  }
  EXPECT_TRUE(flood.front().AwaitHangUp(kPatience));
  EXPECT_EQ(Status().broker, KeeperStatus::Broker::kServed);
  const base::UniqueFd slab = MemoryFile("slab");
  EXPECT_TRUE(Put(&*broker, "slab/1", "", {slab.get()}).ok());
}

TEST_F(Hostile, AFullKeeperSaysSoAndGoesOn) {
  const std::string few = "ulimit -n 480; exec \"$0\" \"$@\"";
  StartAs({"/bin/bash", "-c", few, GMB_KEEPER_PROGRAM, "--socket", socket()});
  const size_t most = Status().max_fds;
  EXPECT_EQ(most, 80U);
  auto broker = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(broker.ok()) << broker.status();
  const base::UniqueFd fd = MemoryFile("slab");
  const std::vector<int> eight(8, fd.get());
  for (size_t i = 0; i < most / 8; ++i)
    ASSERT_TRUE(Put(&*broker, absl::StrCat("slab/", i), "", eight).ok());
  const absl::Status full = Put(&*broker, "one/more", "", {fd.get()});
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(full.message(), HasSubstr("LimitNOFILE"));
  // As many fds as a packet has, and more than it says.
  const EntryHead head{.key = "slab/x", .fds = 1};
  EXPECT_TRUE(absl::IsInvalidArgument(broker
                                          ->Ask(Kind::kPut, Encode(head),
                                                std::vector<int>(253, fd.get()),
                                                Kind::kOk)
                                          .status()));
  EXPECT_EQ(FetchAll(&*broker)->size(), most / 8);
  ASSERT_TRUE(Remove(&*broker, "slab/0").ok());
  EXPECT_TRUE(Put(&*broker, "one/more", "", {fd.get()}).ok());
}

// A socket whose last owner sleeps in its close.
TEST_F(Hostile, AnFdThatIsSlowToCloseHoldsNothingUp) {
  StartKeeper();
  auto broker = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(broker.ok()) << broker.status();
  auto slow = attack::MakeLingeringSocket();
  ASSERT_TRUE(slow.ok()) << slow.status();
  ASSERT_TRUE(Put(&*broker, "session/1", "", {slow->poison.get()}).ok());
  const base::UniqueFd slab = MemoryFile("slab");
  ASSERT_TRUE(Put(&*broker, "slab/1", "", {slab.get()}).ok());
  // Not by us: its close would be the slow one.
  (void)::fcntl(slow->poison.get(), F_SETFL, O_NONBLOCK);
  slow->poison.reset();
  const auto started = std::chrono::steady_clock::now();
  EXPECT_TRUE(Remove(&*broker, "session/1").ok());
  EXPECT_EQ(FetchAll(&*broker)->size(), 1U);
  EXPECT_LT(std::chrono::steady_clock::now() - started,
            std::chrono::seconds(30));
}

TEST_F(Hostile, AWrongCommandLineSaysWhatToDo) {
  const std::pair<std::vector<std::string>, const char*> lines[] = {
      {{}, "--socket is missing"},
      {{"--socket"}, "--socket needs a value"},
      {{"--socket", "/tmp/x/y", "--linger", "soon"}, "--linger: a time as in"},
      {{"--socket", "/tmp/x/y", "--abandon-after=-1s"}, "a time as in"},
      {{"--sockets", "/tmp/x/y"}, "no such option: --sockets"},
      {{"keeper.sock"}, "an option was expected"}};
  int number = 0;
  for (const auto& [words, said] : lines) {
    std::vector<std::string> argv = {GMB_KEEPER_PROGRAM};
    argv.insert(argv.end(), words.begin(), words.end());
    component::Program wrong(directory_.path(), absl::StrCat("wrong", ++number),
                             argv);
    EXPECT_EQ(wrong.AwaitExit(), 2);
    EXPECT_THAT(wrong.Err(), HasSubstr(said));
  }
  component::Program help(directory_.path(), "help",
                          {GMB_KEEPER_PROGRAM, "--help"});
  EXPECT_EQ(help.AwaitExit(), 0);
  EXPECT_THAT(help.Out(), HasSubstr("--abandon-after"));
}

}  // namespace
}  // namespace gmb::keeper
