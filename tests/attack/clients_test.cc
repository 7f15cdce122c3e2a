// Clients that stop, die, read nothing, write a byte at a time, or hold on to
// more than they should.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/attack/attack_fixture.h"
#include "tests/attack/halt_steps.h"

namespace gmb::attack {
namespace {

using component::kMiB;
using component::WaitFor;
using ::testing::HasSubstr;

class ClientsTest : public AttackTest {};

TEST_F(ClientsTest, ThatStopAtAnyStepHoldUpNobody) {
  Start();
  std::vector<std::unique_ptr<Program>> stopped;
  for (const std::string step : kStepsOfALife) {
    stopped.push_back(StartAttacker({"halts", "--step", step}));
    EXPECT_TRUE(stopped.back()->AwaitOut("at " + step))
        << stopped.back()->Err();
  }
  for (int i = 0; i < 5; ++i) ExpectOthersServed();
  for (const auto& client : stopped) {
    client->Signal(SIGKILL);
    EXPECT_EQ(client->AwaitExit(), 128 + SIGKILL);
  }
  ExpectCalmAgain();
  ExpectAllReturned();
}

TEST_F(ClientsTest, ThatDieAtAnyStepLeaveNothing) {
  Start();
  for (int round = 0; round < 3; ++round) {
    for (const std::string step : kStepsOfALife) {
      const auto client =
          StartAttacker({"halts", "--step", step, "--then", "kill"});
      EXPECT_EQ(client->AwaitExit(), 128 + SIGKILL) << client->Err();
    }
  }
  ExpectCalmAgain();
  ExpectAllReturned();
}

TEST_F(ClientsTest, OperatorsThatNeverReadHoldUpNobody) {
  Start();
  std::vector<std::unique_ptr<Program>> watchers;
  for (int i = 0; i < 4; ++i) {
    watchers.push_back(StartGmb("watch" + std::to_string(i), {"watch"}));
    ASSERT_TRUE(Await([&] { return !watchers.back()->Out().empty(); }));
    watchers.back()->Signal(SIGSTOP);
  }
  const auto attacker =
      StartAttacker({"unread_calls", "--greet"}, SocketDir() + "/admin");
  ServeDuring(*attacker, 1);
  Stop(*attacker);
  watchers.clear();
  ExpectCalmAgain();
}

TEST_F(ClientsTest, ThatWriteSingleBytesHoldUpNobody) {
  Start();
  const std::vector<std::vector<std::string>> all = {
      {"single_bytes", "--socket", "handle.sock", "--connections", "64"},
      {"single_bytes", "--socket", "gmb.sock", "--connections", "64"},
      {"single_bytes", "--socket", "gmb.sock", "--greet"}};
  std::vector<std::unique_ptr<Program>> attackers;
  for (const auto& words : all) attackers.push_back(StartAttacker(words));
  ServeDuring(*attackers.back(), 1);
  for (const auto& attacker : attackers) Stop(*attacker);
  ExpectCalmAgain();
}

TEST_F(ClientsTest, OfABrokerWithFewFdsLockNobodyOut) {
  BrokerOptions options;
  options.wrapper = {"sh", "-c", "ulimit -n 2000; exec \"$@\"", "sh"};
  Start(Kernel::kNewest, options);
  const auto handles =
      StartAttacker({"fast_connects", "--keep", "--rate", "5000"});
  const auto calls = StartAttacker(
      {"fast_connects", "--keep", "--rate", "5000", "--socket", "gmb.sock"});
  ServeDuring(*calls, 1);
  Stop(*handles);
  Stop(*calls);
  ExpectCalmAgain();
}

// A broker of an ordinary user: root's fds in flight have no limit.
TEST_F(ClientsTest, ThatLeaveTheirSlabsUnreadHoldUpNobody) {
  constexpr unsigned kUser = 64'321;
  if (::getuid() != 0)
    GTEST_SKIP() << "only root runs processes of another user";
  BrokerOptions options;
  const std::string id = std::to_string(kUser);
  // Few enough to be reached, and enough for 64 sessions of a tenant.
  options.wrapper = {"setpriv", "--reuid", id,
                     "--regid", id,        "--clear-groups",
                     "sh",      "-c",      "ulimit -n 2800; exec \"$@\"",
                     "sh"};
  options.devices = {"host:500MiB"};
  ASSERT_EQ(::chown(Directory().c_str(), kUser, kUser), 0);
  if (Program version(Directory(), "version",
                      [&] {
                        std::vector<std::string> words = options.wrapper;
                        words.insert(words.end(), {GMBD_PROGRAM, "--version"});
                        return words;
                      }());
      version.AwaitExit() != 0) {
    GTEST_SKIP() << "another user may not run gmbd where it lies: "
                 << version.Err();
  }
  Start(Kernel::kNewest, options);
  // 58 slabs for each of 60 sessions.
  const auto attacker = StartAttacker({"unread_slabs", "--connections", "60",
                                       "--bytes", std::to_string(464 * kMiB)});
  ASSERT_TRUE(attacker->AwaitOut("second 1")) << attacker->Err();
  ServeDuring(*attacker, 3);
  Stop(*attacker);
  ExpectCalmAgain();
  ExpectAllReturned();
}

// All that the broker may have at once.
TEST_F(ClientsTest, ThatTakeAllSessionsDoNotLockOperatorsOut) {
  BrokerOptions options;
  options.flags = {"--max-sessions=40"};
  Start(Kernel::kNewest, options);
  const auto attacker = StartAttacker({"hold_sessions", "--connections", "64"});
  ASSERT_TRUE(attacker->AwaitOut("refused=")) << attacker->Out();
  for (int i = 0; i < 3; ++i) {
    const component::Said status = Gmb({"status"});
    EXPECT_EQ(status.exit_code, 0) << status.err;
  }
  Stop(*attacker);
  ExpectCalmAgain();
}

TEST_F(ClientsTest, ThatPunchHolesWhileTheirMemoryIsTakenHarmThemselvesAlone) {
  BrokerOptions options;
  options.flags = {"--host-pool=256MiB"};
  Start(Kernel::kNewest, options);
  const auto attacker =
      StartAttacker({"punch_slabs", "--bytes", std::to_string(160 * kMiB)});
  ASSERT_TRUE(attacker->AwaitOut("attacking")) << attacker->Err();
  for (int round = 0; round < 3; ++round) {
    const auto client = ConnectAs("other");
    ASSERT_NE(client, nullptr);
    auto lease = client->Acquire(128 * kMiB, WaitFor(absl::Seconds(60)));
    ASSERT_TRUE(lease.ok()) << lease.status() << attacker->Err();
    const auto* const bytes = static_cast<const char*>(lease->data());
    EXPECT_EQ(bytes[0], 0);
    EXPECT_EQ(bytes[lease->size_bytes() - 1], 0);
    EXPECT_TRUE(std::move(*lease).Release().ok());
    ExpectOthersServed();
  }
  EXPECT_TRUE(attacker->AwaitOut("evicted=")) << attacker->Out();
  EXPECT_TRUE(attacker->AwaitOut("brought_back=")) << attacker->Out();
  Stop(*attacker);
  ExpectCalmAgain();
  ExpectAllReturned();
}

TEST_F(ClientsTest, ThatTamperWithSlabsHarmThemselvesAlone) {
  Start();
  const auto attacker = StartAttacker({"tamper_slabs"});
  ServeDuring(*attacker, 1);
  Stop(*attacker);
  EXPECT_THAT(attacker->Out(), HasSubstr("tampered="));
  ExpectCalmAgain();
  ExpectAllReturned();
}

// A privileged client gives its slabs to another user: the broker cannot take
// them back as it does others', and goes on with these.
TEST_F(ClientsTest, ThatGiveSlabsAwayHoldUpNobodysBytes) {
  if (::getuid() != 0) GTEST_SKIP() << "only root gives files away";
  Start();
  const auto attacker = StartAttacker({"tamper_slabs", "--keep"});
  ServeDuring(*attacker, 1);
  Stop(*attacker);
  ExpectCalmAgain();
  ExpectAllReturned();
}

}  // namespace
}  // namespace gmb::attack
