#include "broker/instance_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "tests/broker/temp_directory.h"
#include "tests/cli/as_ordinary_user.h"
#include "tests/end_with_parent.h"

namespace gmb::broker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

// A process that holds the lock until it is killed.
class Holder {
 public:
  explicit Holder(const std::string& directory) {
    int ready[2];
    if (::pipe(ready) != 0) return;
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
      EndWithParent(parent);
      const auto lock = InstanceLock::Acquire(directory);
      const char result = lock.ok() ? 'y' : 'n';
      if (::write(ready[1], &result, 1) != 1) ::_exit(1);
      ::pause();
      ::_exit(0);
    }
    char result = 'n';
    held_ = ::read(ready[0], &result, 1) == 1 && result == 'y';
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Holder() { Kill(); }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }
  bool held() const { return held_; }

 private:
  pid_t pid_ = -1;
  bool held_ = false;
};

// Its memory goes first, and its lock with its files.
TEST(InstanceLock, OneThatWasKilledJustNowIsWaitedFor) {
  const TempDirectory directory;
  sigset_t ready;
  ::sigemptyset(&ready);
  ::sigaddset(&ready, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &ready, nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    EndWithParent(parent);
    constexpr size_t kMuch = size_t{512} << 20;
    void* const memory =
        ::mmap(nullptr, kMuch, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    const auto lock = InstanceLock::Acquire(directory.path());
    if (memory == MAP_FAILED || !lock.ok()) ::_exit(1);
    ::kill(::getppid(), SIGUSR1);
    ::pause();
    ::_exit(0);
  }
  int signal = 0;
  ASSERT_EQ(::sigwait(&ready, &signal), 0);
  ::kill(pid, SIGKILL);
  const auto lock = InstanceLock::Acquire(directory.path());
  EXPECT_TRUE(lock.ok()) << lock.status();
  ::waitpid(pid, nullptr, 0);
}

TEST(InstanceLock, ASecondBrokerIsToldWhoHoldsTheDirectory) {
  const TempDirectory directory;
  const Holder holder(directory.path());
  ASSERT_TRUE(holder.held());
  const auto second = InstanceLock::Acquire(directory.path());
  ASSERT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr(directory.path()),
                    HasSubstr("pid " + std::to_string(holder.pid())),
                    HasSubstr("instance_lock_test"), HasSubstr("since 20")));
}

TEST(InstanceLock, IsTakenOverFromAProcessThatWasKilled) {
  const TempDirectory directory;
  Holder holder(directory.path());
  ASSERT_TRUE(holder.held());
  holder.Kill();
  EXPECT_TRUE(InstanceLock::Acquire(directory.path()).ok());
}

TEST(InstanceLock, IsLetGoOfByItsDestructor) {
  const TempDirectory directory;
  std::optional<InstanceLock> first;
  first.emplace(*InstanceLock::Acquire(directory.path()));
  EXPECT_FALSE(InstanceLock::Acquire(directory.path()).ok());
  first.reset();
  EXPECT_TRUE(InstanceLock::Acquire(directory.path()).ok());
}

TEST(InstanceLock, GarbageInALeftOverFileDoesNotMatter) {
  const TempDirectory directory;
  std::ofstream(directory / "gmbd.lock")
      << std::string(100'000, '\n') << '\0' << "\x1b[2J";
  EXPECT_TRUE(InstanceLock::Acquire(directory.path()).ok());
  EXPECT_THAT(
      Contents(directory / "gmbd.lock"),
      MatchesRegex(std::to_string(::getpid()) + "\n20[^\n]*[+]00:00\n"));
}

// As on a full disk: no file may grow.
TEST(InstanceLock, WithoutRoomForThePidItIsHeldAllTheSame) {
  const TempDirectory directory;
  const std::string file = directory / "gmbd.lock";
  std::ofstream(file) << "1\nlong ago\n";
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const auto lock = InstanceLock::Acquire(directory.path());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(Contents(file), "") << "the last one's lines name the wrong one";
  const auto second = InstanceLock::Acquire(directory.path());
  ASSERT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("whose disk had no room"));
}

TEST(InstanceLock, IsClosedToOtherUsers) {
  const TempDirectory directory;
  const mode_t before = ::umask(022);
  const auto lock = InstanceLock::Acquire(directory.path());
  ::umask(before);
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(ModeOf(directory / "gmbd.lock"), 0600U);
}

TEST(InstanceLock, AFileThatAnOlderReleaseLeftOpenToAllIsClosed) {
  const TempDirectory directory;
  const std::string file = directory / "gmbd.lock";
  std::ofstream(file) << "1\nlong ago\n";
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  ASSERT_TRUE(InstanceLock::Probe(directory.path()).ok());
  EXPECT_EQ(ModeOf(file), 0644U) << "a look changes nothing";
  ASSERT_TRUE(InstanceLock::Acquire(directory.path()).ok());
  EXPECT_EQ(ModeOf(file), 0600U);
}

// A stranger that opens the file could hold the lock when its broker dies.
TEST(InstanceLock, AStrangerCannotHoldIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "to be another user needs root";
  const TempDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  const auto lock = InstanceLock::Acquire(directory.path());
  ASSERT_TRUE(lock.ok()) << lock.status();
  std::ofstream(directory / "open to all") << "as a control";
  ASSERT_EQ(::chmod((directory / "open to all").c_str(), 0644), 0);
  const std::string said = cli::AsOrdinaryUser([&] {
    if (::open((directory / "open to all").c_str(), O_RDONLY) < 0)
      return std::string("it cannot enter the directory");
    if (::open((directory / "gmbd.lock").c_str(), O_RDONLY) >= 0)
      return std::string("it can open the lock file");
    return std::string(InstanceLock::Probe(directory.path()).message());
  });
  EXPECT_THAT(said, HasSubstr("which its broker's user and root alone can"));
}

TEST(InstanceLock, AMissingDirectoryAndASymbolicLinkAreErrors) {
  const TempDirectory directory;
  EXPECT_EQ(InstanceLock::Acquire(directory / "none").status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_EQ(::symlink((directory / "elsewhere").c_str(),
                      (directory / "gmbd.lock").c_str()),
            0);
  EXPECT_FALSE(InstanceLock::Acquire(directory.path()).ok());
  EXPECT_NE(::access((directory / "elsewhere").c_str(), F_OK), 0);
}

TEST(InstanceLock, AFifoInItsPlaceIsRefusedWithoutWaiting) {
  const TempDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "gmbd.lock").c_str(), 0600), 0);
  EXPECT_EQ(InstanceLock::Acquire(directory.path()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace gmb::broker
