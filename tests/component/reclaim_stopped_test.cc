// Processes that stand still, or have to die, while their memory is asked for;
// and those that fork, or whose trim hook misbehaves.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <stdexcept>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/component/reclaim_liars.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

GateOptions ParkAtOnce() {
  GateOptions options;
  options.park_after = absl::ZeroDuration();
  return options;
}

class ReclaimStoppedTest : public ReclaimLiarsTest {
 protected:
  // `gmb hold` as "liar": parked, with kLiarBytes that it verifies in the end.
  std::unique_ptr<Program> StartHolder() {
    auto holder =
        StartGmb("hold", {"hold", "--tenant", "liar", "--bytes",
                          absl::StrCat(kLiarBytes >> 20, "MiB"), "--idle"});
    EXPECT_TRUE(holder->AwaitOut("the gate is on")) << holder->Err();
    EXPECT_TRUE(AwaitGate(v1::SessionInfo::GATE_PARKED));
    return holder;
  }
  [[nodiscard]] v1::SessionInfo Holders() const {
    v1::ListSessionsRequest request;
    request.set_tenant("liar");
    const auto list = admin().ListSessions(request);
    return list.ok() && list->sessions_size() == 1 ? list->sessions(0)
                                                   : v1::SessionInfo();
  }
  [[nodiscard]] bool AwaitGate(v1::SessionInfo::Gate gate) const {
    return Await([&] { return Holders().gate() == gate; });
  }
  static void ExpectEndsWhole(Program* holder) {
    holder->Signal(SIGINT);
    EXPECT_EQ(holder->AwaitExit(), 0) << holder->Out() << holder->Err();
  }
};

TEST_F(ReclaimStoppedTest, OneThatIsStoppedWhileParkedAnswersWhenItGoesOn) {
  const auto holder = StartHolder();
  holder->Signal(SIGSTOP);
  auto in_vain = Wait(absl::Seconds(4));
  EXPECT_TRUE(absl::IsResourceExhausted(in_vain.get()));
  EXPECT_TRUE(watch().AwaitOut("client_overdue"));
  auto waiting = Wait();
  holder->Signal(SIGCONT);
  const absl::Status served = waiting.get();
  EXPECT_TRUE(served.ok()) << served;
  ExpectEndsWhole(holder.get());
}

TEST_F(ReclaimStoppedTest, OneThatIsStoppedWhileClosedIsInNobodysWay) {
  const auto holder = StartHolder();
  ASSERT_TRUE(Wait().get().ok());
  EXPECT_EQ(Holders().gate(), v1::SessionInfo::GATE_CLOSED);
  holder->Signal(SIGSTOP);
  for (int i = 0; i < 3; ++i) {
    const absl::Status served = Take(kWaitingBytes, kLong);
    EXPECT_TRUE(served.ok()) << served;
  }
  holder->Signal(SIGCONT);
  ExpectEndsWhole(holder.get());
}

TEST_F(ReclaimStoppedTest, OneThatMayBeTerminatedIsKilledForItsMemory) {
  LetTerminate("liar");
  const auto holder = StartHolder();
  holder->Signal(SIGSTOP);
  const absl::Status served = Wait().get();
  EXPECT_TRUE(served.ok()) << served;
  EXPECT_EQ(holder->AwaitExit(), 128 + SIGKILL);
  EXPECT_TRUE(watch().AwaitOut("terminated")) << watch().Out();
}

TEST_F(ReclaimStoppedTest, OneThatDiesWhileClosedLeavesNothing) {
  const auto holder = StartHolder();
  ASSERT_TRUE(Wait().get().ok());
  holder->Signal(SIGSTOP);
  holder->Signal(SIGKILL);
  EXPECT_EQ(holder->AwaitExit(), 128 + SIGKILL);
}

// The child has no session, and does not keep the memory from being taken.
TEST_F(ReclaimStoppedTest, AForkInAScopeIsNoScopeOfTheChild) {
  const auto client = ConnectAs("liar");
  ASSERT_TRUE(client->TurnGateOn(ParkAtOnce()).ok());
  auto lease = client->Acquire(kLiarBytes, WaitFor(kLong));
  ASSERT_TRUE(lease.ok());
  int until_told[2];
  int says[2];
  ASSERT_EQ(::pipe(until_told), 0);
  ASSERT_EQ(::pipe(says), 0);
  pid_t child = -1;
  {
    auto scope = client->Enter(kLong);
    ASSERT_TRUE(scope.ok());
    *static_cast<uint64_t*>(lease->data()) = 5;
    child = ::fork();
    if (child == 0) {
      ::close(until_told[1]);
      scope->Leave();
      const bool refused = absl::IsFailedPrecondition(
          client->Enter(absl::ZeroDuration()).status());
      const char word = refused ? 'y' : 'n';
      if (::write(says[1], &word, 1) != 1) ::_exit(1);
      char told = 0;
      ::_exit(::read(until_told[0], &told, 1) == 0 ? 0 : 1);
    }
    char word = 0;
    ASSERT_EQ(::read(says[0], &word, 1), 1);
    EXPECT_EQ(word, 'y');
    // The parent's scope is still in.
    EXPECT_TRUE(absl::IsResourceExhausted(
        Take(kWaitingBytes, absl::Milliseconds(100))));
  }
  const absl::Status served = Wait().get();
  EXPECT_TRUE(served.ok()) << served;
  {
    auto scope = client->Enter(kLong);
    ASSERT_TRUE(scope.ok()) << scope.status();
    EXPECT_EQ(*static_cast<uint64_t*>(lease->data()), 5U);
  }
  for (const int fd : {until_told[1], until_told[0], says[0], says[1]})
    ::close(fd);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::move(*lease).Release().ok());
}

class ReclaimTrimTest : public ReclaimLiarsTest {
 protected:
  // Its memory is taken although it says that it could trim.
  void ExpectServedDespite(TrimHandler on_trim) {
    ClientOptions options = OptionsFor(TenantDir("liar"));
    options.on_trim = std::move(on_trim);
    auto client = Client::Connect(options);
    ASSERT_TRUE(client.ok()) << client.status();
    ASSERT_TRUE((*client)->TurnGateOn(ParkAtOnce()).ok());
    auto lease = (*client)->Acquire(kLiarBytes, WaitFor(kLong));
    ASSERT_TRUE(lease.ok());
    ASSERT_TRUE((*client)->SetTrimmable("", kLiarBytes).ok());
    for (int i = 0; i < 2; ++i) {
      const absl::Status served = Wait().get();
      EXPECT_TRUE(served.ok()) << served;
      EXPECT_TRUE(watch().AwaitOut("trim_asked")) << watch().Out();
      ASSERT_TRUE((*client)->Enter(kLong).ok());
      ASSERT_TRUE((*client)->SetTrimmable("", kLiarBytes).ok());
    }
    EXPECT_TRUE(std::move(*lease).Release().ok());
    before_close_();
  }

  std::function<void()> before_close_ = [] {};
};

TEST_F(ReclaimTrimTest, ATrimHookThatThrowsIsNoTrim) {
  ExpectServedDespite([](const std::string&, uint64_t, absl::Duration) {
    throw std::runtime_error("no");
  });
}

TEST_F(ReclaimTrimTest, ATrimHookThatTakesForEverIsNotWaitedFor) {
  std::promise<void> enough;
  std::shared_future<void> until(enough.get_future());
  before_close_ = [&] { enough.set_value(); };
  ExpectServedDespite(
      [until](const std::string&, uint64_t, absl::Duration) { until.wait(); });
}

TEST(ReclaimStartTest, AHostPoolLargerThanMemoryIsRefusedWithWhatToDo) {
  const testing::TemporaryDirectory directory;
  BrokerOptions options;
  options.flags = {"--host-pool=4096GiB"};
  BrokerProcess broker(directory.path(), options);
  EXPECT_EQ(broker.AwaitServing(), nullptr);
  EXPECT_GT(broker.program().AwaitExit(), 0);
  EXPECT_THAT(broker.Log(), HasSubstr("--host-pool"));
  EXPECT_THAT(broker.Log(),
              ::testing::AnyOf(HasSubstr("lower"), HasSubstr("smaller"),
                               HasSubstr("less")));
}

}  // namespace
}  // namespace gmb::component
