#include "ipc/gate_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <random>
#include <thread>

#include "ipc/gate_control.h"
#include "tests/ipc/open_fds.h"

namespace gmb::ipc {
namespace {

class GatePageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto fd = CreateGatePage();
    ASSERT_TRUE(fd.ok()) << fd.status();
    fd_ = *std::move(fd);
  }
  GatePage Map() {
    auto page = GatePage::Map(fd_.get());
    EXPECT_TRUE(page.ok()) << page.status();
    return *std::move(page);
  }
  base::UniqueFd fd_;
};

TEST_F(GatePageTest, StartsOffAndIsTheSameMemoryForBothSides) {
  const GatePage broker = Map();
  const GatePage client = Map();
  EXPECT_EQ(LookAtGate(client.cells()), kGateOff);
  GateWord seen = kGateOff;
  const GateWord parked(GateState::kParked, 0, 1);
  EXPECT_TRUE(MoveGate(client.cells(), seen, parked));
  EXPECT_TRUE(CloseGate(broker.cells(), parked));
  EXPECT_EQ(LookAtGate(client.cells()), GateWord(GateState::kClosed, 0, 1));
}

TEST_F(GatePageTest, AClientCannotShrinkGrowOrUnsealIt) {
  const GatePage page = Map();
  EXPECT_EQ(::ftruncate(fd_.get(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(fd_.get(), 1 << 20), -1);
  EXPECT_EQ(errno, EPERM);
  // Nor forbid writing to the broker.
  EXPECT_EQ(::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
  EXPECT_EQ(LookAtGate(page.cells()), kGateOff);
}

TEST_F(GatePageTest, AHoleIsAGateThatTheBrokerLetsAlone) {
  const GatePage page = Map();
  page.cells().word = GateWord(GateState::kParked, 0, 9).bits();
  if (::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  GatePage::kBytes) != 0) {
    GTEST_SKIP() << "no holes in memfds here";
  }
  const GateWord word = LookAtGate(page.cells());
  EXPECT_EQ(word, GateWord(0));
  EXPECT_FALSE(CloseGate(page.cells(), word));
  PauseGate(page.cells());
  EXPECT_TRUE(LookAtGate(page.cells()).paused());
}

TEST(GatePageMap, OtherMemoryIsRefused) {
  const size_t before = gmb::testing::OpenFds();
  {
    const base::UniqueFd unsealed(::memfd_create("x", MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(unsealed.get(), GatePage::kBytes), 0);
    EXPECT_EQ(GatePage::Map(unsealed.get()).status().code(),
              absl::StatusCode::kInvalidArgument);
    ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    EXPECT_FALSE(GatePage::Map(unsealed.get()).ok());

    const base::UniqueFd small(::memfd_create("x", MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(small.get(), 64), 0);
    ASSERT_EQ(::fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW),
              0);
    EXPECT_FALSE(GatePage::Map(small.get()).ok());

    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const base::UniqueFd in(ends[0]);
    const base::UniqueFd out(ends[1]);
    EXPECT_FALSE(GatePage::Map(in.get()).ok());
    EXPECT_FALSE(GatePage::Map(-1).ok());
  }
  EXPECT_EQ(gmb::testing::OpenFds(), before);
}

TEST_F(GatePageTest, IsNotInheritedByAForkedChild) {
  const GatePage page = Map();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    unsigned char in_core = 0;
    const bool mapped =
        ::mincore(&page.cells(), GatePage::kBytes, &in_core) == 0;
    ::_exit(mapped || errno != ENOMEM ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// A client that writes what it likes, as fast as it can: the broker's moves
// return, and close nothing but what said that it was parked.
TEST_F(GatePageTest, GarbageHurtsNoMoveOfTheBroker) {
  constexpr uint64_t kSeed = 7041;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  const GatePage broker = Map();
  const GatePage client = Map();
  std::atomic<bool> stop{false};
  std::thread liar([&] {
    std::mt19937_64 random(kSeed);
    while (!stop) {
      const uint64_t bits = random();
      client.cells().word = random() % 2 == 0 ? bits : bits & 7;
      client.cells().left_at_ns = bits;
    }
  });
  int closed = 0;
  int moves = 0;
  while (closed < 50 || moves < 100'000) {
    ++moves;
    const GateWord seen = LookAtGate(broker.cells());
    if (CloseGate(broker.cells(), seen)) {
      ++closed;
      EXPECT_TRUE(seen.parked());
      (void)ReopenGate(broker.cells(), *AfterClose(seen));
    }
    PauseGate(broker.cells());
    WithdrawPause(broker.cells());
    (void)CopyHolds(broker.cells(), seen.epoch());
  }
  stop = true;
  liar.join();
  // With the liar gone, one move settles it.
  client.cells().word = GateWord(GateState::kParked, 0, 1).bits();
  EXPECT_TRUE(CloseGate(broker.cells(), LookAtGate(broker.cells())));
  client.cells().word = GateWord(GateState::kOpen, 0, 1).bits();
  EXPECT_FALSE(ReopenGate(broker.cells(), GateWord(GateState::kClosed, 0, 1)));
  std::printf("closed %d of %d times\n", closed, moves);
}

}  // namespace
}  // namespace gmb::ipc
