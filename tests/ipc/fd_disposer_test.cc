#include "ipc/fd_disposer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ipc/foreign_fds.h"
#include "ipc/seqpacket.h"
#include "tests/ipc/open_fds.h"
#include "tests/ipc/silent_files.h"
#include "tests/ipc/temporary_directory.h"

namespace gmb::ipc {
namespace {

using Clock = std::chrono::steady_clock;

// Far beyond what an interrupted close takes, far below the linger time.
constexpr std::chrono::seconds kLong{20};
constexpr int kLingerSeconds = 3600;

template <typename Predicate>
bool Await(Predicate wanted) {
  const auto deadline = Clock::now() + kLong;
  while (!wanted()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

// A TCP connection of which closing the first end waits for the second to read.
std::pair<base::UniqueFd, base::UniqueFd> LingeringConnection() {
  const base::UniqueFd listener(
      ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size),
            0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address),
                          &size),
            0);
  base::UniqueFd sender(
      ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  (void)::connect(sender.get(), reinterpret_cast<sockaddr*>(&address), size);
  base::UniqueFd reader(::accept(listener.get(), nullptr, nullptr));
  const linger wait{.l_onoff = 1, .l_linger = kLingerSeconds};
  EXPECT_EQ(
      ::setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)),
      0);
  const std::string data(64 * 1024, 'x');
  while (::send(sender.get(), data.data(), data.size(), MSG_DONTWAIT) > 0) {
  }
  return {std::move(sender), std::move(reader)};
}

// A socket with `fd` unread in it; `fd` is nowhere else.
base::UniqueFd SocketWithUnreadFd(base::UniqueFd fd,
                                  int type = SOCK_SEQPACKET) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()), 0);
  base::UniqueFd mine(ends[0]);
  SeqpacketSocket theirs((base::UniqueFd(ends[1])));
  const int sent = fd.get();
  EXPECT_TRUE(theirs.Send("x", {&sent, 1}, false, absl::Seconds(20)).ok());
  return mine;
}

TEST(FdDisposerTest, ClosesWhatItIsGiven) {
  const size_t before = gmb::testing::OpenFds();
  {
    auto disposer = FdDisposer::Start();
    ASSERT_TRUE(disposer.ok()) << disposer.status();
    for (int i = 0; i < 100; ++i)
      (*disposer)->Dispose(base::UniqueFd(::dup(STDERR_FILENO)));
    (*disposer)->Dispose(base::UniqueFd());
    EXPECT_TRUE(Await([&] { return (*disposer)->waiting() == 0; }));
  }
  EXPECT_EQ(gmb::testing::OpenFds(), before);
}

// To see that the test's sockets do what they are for.
TEST(FdDisposerTest, ALingeringSocketInAClosedSocketBlocksWhoClosesIt) {
  auto [sender, reader] = LingeringConnection();
  base::UniqueFd socket = SocketWithUnreadFd(std::move(sender));
  std::atomic<bool> closed = false;
  std::thread closer([&] {
    socket.reset();
    closed = true;
  });
  const auto until = Clock::now() + std::chrono::milliseconds(200);
  std::this_thread::sleep_until(until);
  EXPECT_FALSE(closed);
  reader.reset();  // ends the wait
  closer.join();
}

TEST(FdDisposerTest, LingeringSocketsHoldNothingUp) {
  auto disposer = FdDisposer::Start();
  ASSERT_TRUE(disposer.ok()) << disposer.status();
  std::vector<base::UniqueFd> readers;
  for (int i = 0; i < 50; ++i) {
    auto [sender, reader] = LingeringConnection();
    // In two steps: our own copy of the fd has to be closed by then.
    base::UniqueFd slow =
        i % 2 == 0 ? SocketWithUnreadFd(std::move(sender)) : std::move(sender);
    (*disposer)->Dispose(std::move(slow));
    readers.push_back(std::move(reader));
  }
  EXPECT_TRUE(Await([&] { return (*disposer)->waiting() == 0; }));
}

// As an epoll_wait of gRPC has it while it looks at the stream.
TEST(FdDisposerTest, AnotherReferenceToAnEndedStreamHoldsUpNobody) {
  auto disposer = FdDisposer::Start();
  ASSERT_TRUE(disposer.ok()) << disposer.status();
  auto [sender, reader] = LingeringConnection();
  base::UniqueFd stream = SocketWithUnreadFd(std::move(sender), SOCK_STREAM);
  base::UniqueFd other(::dup(stream.get()));
  ::shutdown(stream.get(), SHUT_RDWR);
  (*disposer)->Dispose(std::move(stream));
  ASSERT_TRUE(Await([&] { return (*disposer)->waiting() == 0; }));
  std::atomic<bool> closed = false;
  std::thread closer([&] {
    other.reset();
    closed = true;
  });
  EXPECT_TRUE(Await([&] { return closed.load(); }));
  reader.reset();  // would end a wait
  closer.join();
}

// A duplicate may be the next broker's, which reads what came meanwhile.
TEST(FdDisposerTest, UnreadPacketsStayForADuplicate) {
  auto disposer = FdDisposer::Start();
  ASSERT_TRUE(disposer.ok()) << disposer.status();
  base::UniqueFd socket =
      SocketWithUnreadFd(base::UniqueFd(::dup(STDERR_FILENO)));
  const base::UniqueFd other(::dup(socket.get()));
  (*disposer)->Dispose(std::move(socket));
  ASSERT_TRUE(Await([&] { return (*disposer)->waiting() == 0; }));
  char byte = 0;
  EXPECT_EQ(::recv(other.get(), &byte, 1, MSG_DONTWAIT), 1);
}

TEST(FdDisposerTest, WhatNoSignalEndsHoldsUpItsOwnDoorAlone) {
  constexpr size_t kSilent = FdDisposer::kCrowded + 2;
  const testing::TemporaryDirectory directory;
  auto files = testing::SilentFiles::Mount(directory.path());
  if (!files.ok()) GTEST_SKIP() << files.status();
  auto disposer = FdDisposer::Start();
  ASSERT_TRUE(disposer.ok()) << disposer.status();
  for (size_t i = 0; i < kSilent; ++i) {
    base::UniqueFd socket = SocketWithUnreadFd((*files)->Open());
    (*files)->ChangeLast();
    (*disposer)->Dispose(std::move(socket), "silent");
  }
  for (int i = 0; i < 100; ++i)
    (*disposer)->Dispose(base::UniqueFd(::dup(STDERR_FILENO)), "other");
  const auto only_its_own_wait = [&] {
    return !(*disposer)->IsCrowded("other") &&
           (*disposer)->waiting() == kSilent;
  };
  EXPECT_TRUE(Await(only_its_own_wait));
  EXPECT_TRUE((*disposer)->IsCrowded("silent"));
  (*files).reset();  // the server ends
  EXPECT_TRUE(Await([&] { return (*disposer)->waiting() == 0; }));
  EXPECT_FALSE((*disposer)->IsCrowded("silent"));
}

TEST(FdDisposerTest, ItEndsThoughACloseDoesNot) {
  const testing::TemporaryDirectory directory;
  auto files = testing::SilentFiles::Mount(directory.path());
  if (!files.ok()) GTEST_SKIP() << files.status();
  {
    auto disposer = FdDisposer::Start();
    ASSERT_TRUE(disposer.ok()) << disposer.status();
    base::UniqueFd socket = SocketWithUnreadFd((*files)->Open());
    (*files)->ChangeLast();
    (*disposer)->Dispose(std::move(socket), "silent");
  }
}

TEST(ForeignFdsTest, ALookTellsThatFdsComeAndLeavesThem) {
  std::array<int, 2> ends{};
  ASSERT_EQ(
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  SeqpacketSocket mine((base::UniqueFd(ends[0])));
  SeqpacketSocket theirs((base::UniqueFd(ends[1])));
  for (const bool credentials : {false, true}) {
    ASSERT_TRUE(!credentials || mine.EnableCredentials().ok());
    EXPECT_FALSE(*NextPacketHasFds(mine.fd()));
    ASSERT_TRUE(*theirs.TrySend("plain", {}));
    EXPECT_FALSE(*NextPacketHasFds(mine.fd()));
    const auto plain = mine.TryReceiveWithoutFds();
    ASSERT_TRUE(plain.ok() && plain->has_value()) << plain.status();
    EXPECT_EQ((*plain)->bytes, "plain");
    EXPECT_EQ((*plain)->credentials.has_value(), credentials);
    const int fd = STDERR_FILENO;
    ASSERT_TRUE(*theirs.TrySend("with", {&fd, 1}));
    const size_t before = gmb::testing::OpenFds();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(*NextPacketHasFds(mine.fd()));
      EXPECT_TRUE(
          absl::IsFailedPrecondition(mine.TryReceiveWithoutFds().status()));
    }
    EXPECT_EQ(gmb::testing::OpenFds(), before);
    EXPECT_TRUE(mine.TryReceive()->has_value());  // for the next round
  }
}

TEST(ForeignFdsTest, ASocketThatRefusesFdsSendsThem) {
  std::array<int, 2> ends{};
  ASSERT_EQ(
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  SeqpacketSocket mine((base::UniqueFd(ends[0])));
  SeqpacketSocket theirs((base::UniqueFd(ends[1])));
  EXPECT_FALSE(RefusesFds(mine.fd()));
  if (!RefuseFds(mine.fd())) GTEST_SKIP() << "SO_PASSRIGHTS needs Linux 6.16";
  EXPECT_TRUE(RefusesFds(mine.fd()));
  const int fd = STDERR_FILENO;
  EXPECT_FALSE(theirs.TrySend("x", {&fd, 1}).ok());
  ASSERT_TRUE(*mine.TrySend("y", {&fd, 1}));
  EXPECT_EQ((*theirs.TryReceive())->fds.size(), 1U);
}

}  // namespace
}  // namespace gmb::ipc
