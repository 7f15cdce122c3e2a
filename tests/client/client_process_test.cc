// Tests that take a second process: forked children, and brokers that are
// stopped or killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/unique_fd.h"
#include "gmb/client.h"
#include "ipc/socket_path.h"
#include "tests/client/client_fixture.h"
#include "tests/end_with_parent.h"

namespace gmb {
namespace {

class ClientProcessTest : public test::ClientTest {
 protected:
  ~ClientProcessTest() override { KillBroker(); }

  void StartBrokerProcess() {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    ASSERT_EQ(pipe2(in.data(), O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(out.data(), O_CLOEXEC), 0);
    pid_ = fork();
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execl(GMB_FAKE_BROKER, GMB_FAKE_BROKER, dir().c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    input_.reset(in[1]);
    const base::UniqueFd ready(out[0]);
    std::array<char, 6> line{};
    ASSERT_EQ(read(ready.get(), line.data(), line.size()), 6);  // "ready\n"
  }

  void KillBroker() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  void StopBrokerProcess() const {
    int status = 0;
    ASSERT_EQ(kill(pid_, SIGSTOP), 0);
    ASSERT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);  // all its threads
    ASSERT_TRUE(WIFSTOPPED(status));
  }
  void ContinueBrokerProcess() const { ASSERT_EQ(kill(pid_, SIGCONT), 0); }

  // Runs `body` in a forked child; the number of the first expectation that
  // does not hold there, 0 when all do. GoogleTest does not work in the child.
  static int InChild(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(body());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  base::UniqueFd input_;  // the broker's; it ends when this closes
};

TEST_F(ClientProcessTest, EveryCallFailsInAForkedChildAndNothingIsHarmed) {
  StartBrokerProcess();
  auto client = ConnectOrDie();
  Lease lease = *client->Acquire(4 * kMiB);
  Lease other = *client->Acquire(4 * kMiB);
  std::memset(lease.data(), 0x11, lease.size_bytes());
  EXPECT_EQ(InChild([&] {
              const auto failed = [](const absl::Status& status) {
                return absl::IsFailedPrecondition(status) &&
                       absl::StrContains(status.message(), "forked");
              };
              char byte = 0;
              if (!failed(client->Acquire(kMiB).status())) return 1;
              if (!failed(client->GetQuota().status())) return 2;
              if (!failed(client->status())) return 3;
              if (!failed(lease.CopyToHost(&byte, 0, 1))) return 4;
              if (!failed(lease.CopyFromHost(0, &byte, 1))) return 5;
              if (!failed(lease.Fill(0, 1, 1))) return 6;
              if (!failed(std::move(lease).Release())) return 7;
              if (!failed(Client::Connect(Options()).status())) return 8;
              if (client->tenant() != "fake") return 9;
              other = Lease();  // drops it
              client.reset();
              return 0;
            }),
            0);
  EXPECT_EQ(static_cast<char*>(lease.data())[0], 0x11);
  EXPECT_TRUE(client->GetQuota().ok());
  EXPECT_TRUE(client->Acquire(4 * kMiB).ok());
  EXPECT_TRUE(std::move(lease).Release().ok());
  EXPECT_TRUE(std::move(other).Release().ok());
}

TEST_F(ClientProcessTest, AForkWhileThreadsAcquireIsHarmless) {
  StartBrokerProcess();
  const auto client = ConnectOrDie();
  std::atomic<bool> stop = false;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        if (!client->Acquire(4 * kMiB).ok()) ++failures;
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    // Locks may be held by threads that the child does not have.
    EXPECT_EQ(
        InChild([&] {
          return absl::IsFailedPrecondition(client->Acquire(kMiB).status()) ? 0
                                                                            : 1;
        }),
        0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(ClientProcessTest, AStoppedBrokerTimesOutAndWorksAgainWhenContinued) {
  StartBrokerProcess();
  const auto client = ConnectOrDie(ImpatientOptions());
  Lease lease = *InTime([&] { return client->Acquire(4 * kMiB); });
  StopBrokerProcess();
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->Acquire(4 * kMiB).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->GetQuota().status()));
  ClientOptions impatient = Options();
  impatient.connect_timeout = absl::Milliseconds(100);
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(Client::Connect(std::move(impatient)).status()));
  std::memset(lease.data(), 1, lease.size_bytes());
  ContinueBrokerProcess();
  absl::Status answered = absl::UnknownError("not asked yet");
  while (!answered.ok()) {
    answered = client->GetQuota().status();
    ASSERT_TRUE(answered.ok() || absl::IsDeadlineExceeded(answered))
        << answered;
  }
  EXPECT_TRUE(std::move(lease).Release().ok());
}

TEST_F(ClientProcessTest, DestructionDoesNotWaitForAStoppedBroker) {
  StartBrokerProcess();
  auto client = ConnectOrDie();
  Lease lease = *client->Acquire(4 * kMiB);
  StopBrokerProcess();
  lease = Lease();
  client.reset();
}

TEST_F(ClientProcessTest, AKilledBrokerEndsTheSessionAndLeavesTheMemory) {
  StartBrokerProcess();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(4 * kMiB);
  std::memset(lease.data(), 0x22, lease.size_bytes());
  KillBroker();
  const absl::Status status = client->Acquire(4 * kMiB).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(static_cast<char*>(lease.data())[4 * kMiB - 1], 0x22);
  EXPECT_TRUE(std::move(lease).Release().ok());
}

TEST_F(ClientProcessTest, OneThatConnectsBetweenTwoBrokersMeetsTheNext) {
  StartBrokerProcess();
  ASSERT_NE(ConnectOrDie(), nullptr);
  KillBroker();
  std::promise<void> connects;
  auto client = std::async(std::launch::async, [&] {
    connects.set_value();
    return Client::Connect(Options());
  });
  connects.get_future().wait();
  StartBrokerProcess();
  const auto connected = client.get();
  ASSERT_TRUE(connected.ok()) << connected.status();
  EXPECT_TRUE((*connected)->Acquire(4 * kMiB).ok());
}

// How many sockets have the broker's handle socket as their address: its own,
// and one for each connection, accepted or not.
size_t SocketsAt(const std::string& path) {
  std::ifstream table("/proc/net/unix");
  size_t count = 0;
  for (std::string line; std::getline(table, line);)
    count += absl::EndsWith(line, " " + path) ? 1 : 0;
  return count;
}

TEST_F(ClientProcessTest, OneWhoseBrokerDiesWhileItGreetsMeetsTheNext) {
  StartBrokerProcess();
  const std::string path = dir() + "/handle.sock";
  const size_t before = SocketsAt(path);
  ASSERT_GT(before, 0U);
  StopBrokerProcess();
  auto client = std::async(std::launch::async,
                           [&] { return Client::Connect(Options()); });
  while (SocketsAt(path) == before) std::this_thread::yield();
  KillBroker();
  StartBrokerProcess();
  const auto connected = client.get();
  ASSERT_TRUE(connected.ok()) << connected.status();
  EXPECT_TRUE((*connected)->Acquire(4 * kMiB).ok());
}

// A socket like a broker's, in the place of the one that lies there.
base::UniqueFd ListenAt(const std::string& path) {
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const absl::StatusOr<sockaddr_un> address = ipc::SocketAddress(path + ".new");
  const bool listens =
      address.ok() &&
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address),
             sizeof(*address)) == 0 &&
      ::listen(fd.get(), 8) == 0 &&
      std::rename((path + ".new").c_str(), path.c_str()) == 0;
  if (!listens) fd.reset();
  return fd;
}

// How long Connect took that was to end with UNAVAILABLE: the shortest of a few
// times, since the machine may be busy.
absl::Duration TimeToFail(const ClientOptions& options) {
  absl::Duration shortest = absl::InfiniteDuration();
  for (int i = 0; i < 5; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    const absl::Status failed = Client::Connect(options).status();
    shortest = std::min(
        shortest, absl::FromChrono(std::chrono::steady_clock::now() - begun));
    EXPECT_FALSE(failed.ok());
  }
  return shortest;
}

// Each has a successor at once, which dies as well.
TEST_F(ClientProcessTest, BrokersThatDieWhileTheyGreetAreTriedForTheTimeout) {
  const std::string path = dir() + "/handle.sock";
  const pid_t test = getpid();
  const pid_t manager = fork();
  ASSERT_GE(manager, 0);
  if (manager == 0) EndWithParent(test);
  while (manager == 0) {
    const pid_t parent = getpid();
    const pid_t broker = fork();
    if (broker == 0) {
      EndWithParent(parent);
      const base::UniqueFd listener = ListenAt(path);
      if (listener.valid()) (void)accept(listener.get(), nullptr, nullptr);
      _exit(0);
    }
    waitpid(broker, nullptr, 0);
  }
  while (!std::filesystem::exists(path)) std::this_thread::yield();
  ClientOptions options = Options();
  options.connect_timeout = absl::Milliseconds(200);
  EXPECT_LT(TimeToFail(options), absl::Milliseconds(600));
  kill(manager, SIGKILL);
  waitpid(manager, nullptr, 0);
}

// It is waited for its death, which does not come.
TEST_F(ClientProcessTest, ABrokerThatHangsUpAndLivesCostsNoMoreThanTheTimeout) {
  const base::UniqueFd listener = ListenAt(dir() + "/handle.sock");
  ASSERT_TRUE(listener.valid());
  std::thread hangs_up([&listener] {
    for (;;) {
      const base::UniqueFd peer(accept(listener.get(), nullptr, nullptr));
      if (!peer.valid()) return;
    }
  });
  ClientOptions options = Options();
  options.connect_timeout = absl::Milliseconds(20);
  EXPECT_LT(TimeToFail(options), absl::Milliseconds(400));
  shutdown(listener.get(), SHUT_RDWR);
  hangs_up.join();
}

TEST_F(ClientProcessTest, AfterAKilledBrokerThatNobodyFollowsThereIsNone) {
  StartBrokerProcess();
  KillBroker();
  const absl::Status none = Client::Connect(Options()).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kUnavailable) << none;
}

}  // namespace
}  // namespace gmb
