// A broker and its keeper in pid namespaces beside each other, as in a pod.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "ipc/pidfd.h"
#include "tests/component/pid_namespace.h"
#include "tests/component/restart_fixture.h"

namespace gmb::component {
namespace {

base::UniqueFd PidfdOf(pid_t pid) {
  return base::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

class KeeperNamespaceTest : public RestartFixture {
 protected:
  void SetUp() override {
    if (!MayMakePidNamespaces(Directory()))
      GTEST_SKIP() << "no pid namespaces for this user";
    if (!ipc::ProcessNumber(PidfdOf(::getpid())).has_value())
      GTEST_SKIP() << "processes have no numbers here: Linux before 6.9";
    keeper_ = std::make_unique<Program>(
        Directory(), "keeper",
        InPidNamespace({GMB_KEEPER_PROGRAM, "--socket", KeeperSocket()}));
    ASSERT_TRUE(keeper_->AwaitErr("listens")) << keeper_->Err();
    StartBroker(Options());
    MakeTenant("a");
  }
  // unshare(1) does not pass SIGTERM on.
  void ExpectToStop() {
    ::kill(FirstOf(broker().program()), SIGTERM);
    EXPECT_EQ(broker().program().AwaitExit(), 0) << broker().Log();
  }

  [[nodiscard]] BrokerOptions Options() const override {
    BrokerOptions options = RestartFixture::Options();
    options.wrapper = InPidNamespace();
    return options;
  }
};

// The broker has hung up on it, and comes back.
TEST_F(KeeperNamespaceTest, AKeeperThatWasSilentIsFoundAgain) {
  const pid_t keeper = FirstOf(*keeper_);
  ASSERT_GT(keeper, 0);
  ASSERT_EQ(::kill(keeper, SIGSTOP), 0);
  // The session is the first thing that it is to keep meanwhile.
  const auto client = ConnectAs("a");
  auto lease = client->Acquire(10 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(Await(
      [&] { return absl::StrContains(broker().Log(), " keeper_lost "); }));
  ASSERT_EQ(::kill(keeper, SIGCONT), 0);
  ASSERT_TRUE(Await([&] {
    return absl::StrContains(broker().Log(), " keeper_found ");
  })) << Gmb({"doctor", "--keeper", KeeperSocket()}).out;
  Fill(*lease, 5);
  // It has the lease for the next one.
  const base::UniqueFd last = PidfdOf(FirstOf(broker().program()));
  KillBroker();
  pollfd died{.fd = last.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&died, 1, 60'000), 1);
  StartBroker(Options());
  EXPECT_EQ(Status().sessions(), 1U);
  EXPECT_TRUE(Holds(*lease, 5));
  EXPECT_TRUE(std::move(*lease).Release().ok());
  ExpectToStop();
}

}  // namespace
}  // namespace gmb::component
