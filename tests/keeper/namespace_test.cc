// A keeper in a pid namespace that has none of its brokers: all have pid 0.
#include <sys/socket.h>

#include <array>

#include "ipc/pidfd.h"
#include "tests/component/pid_namespace.h"
#include "tests/keeper/forked.h"
#include "tests/keeper/keeper_fixture.h"

namespace gmb::keeper {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Where the kernel shows a keeper which process it is all the same.
bool ProcessesAreKnown() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) != 0) return false;
  const base::UniqueFd one(ends[0]);
  const base::UniqueFd other(ends[1]);
  const auto pidfd = ipc::OpenPeerPidfd(one.get(), /*pid=*/0);
  return pidfd.ok() && ipc::ProcessNumber(*pidfd).has_value();
}

class NamespaceTest : public KeeperTest {
 protected:
  void SetUp() override {
    if (!component::MayMakePidNamespaces(directory_.path()))
      GTEST_SKIP() << "no pid namespaces for this user";
    if (!ProcessesAreKnown())
      GTEST_SKIP() << "processes have no numbers here: Linux before 6.9";
    StartAs(
        component::InPidNamespace({GMB_KEEPER_PROGRAM, "--socket", socket()}));
  }
  // This process is served, and hangs up.
  void BeServedWith(const std::string& key) {
    auto link = KeeperLink::Connect(AsBroker(kPatience));
    ASSERT_TRUE(link.ok()) << link.status();
    broker_ = std::make_unique<KeeperLink>(*std::move(link));
    const base::UniqueFd slab = MemoryFile("slab");
    ASSERT_TRUE(Put(broker_.get(), key, "", {slab.get()}).ok());
  }
  void HangUp() {
    broker_.reset();
    ASSERT_TRUE(component::Await(
        [&] { return Status().broker == KeeperStatus::Broker::kHungUp; }));
  }
  std::string Gmb(std::vector<std::string> words) {
    words.insert(words.begin(), GMB_PROGRAM);
    component::Program command(directory_.path(), "gmb", words);
    (void)command.AwaitExit();
    return command.Out();
  }
  std::string Doctor() {
    return Gmb({"doctor", "--keeper", socket(), "--socket-dir",
                directory_.path() + "/none"});
  }

  std::unique_ptr<KeeperLink> broker_;
};

TEST_F(NamespaceTest, ABrokerThatHungUpMayComeBackAndNoOther) {
  BeServedWith("slab/1");
  EXPECT_EQ(Status().broker_pid, 0);
  HangUp();
  Forked other([&](const auto& say) {
    const auto link = KeeperLink::Connect(AsBroker());
    say(link.ok() ? "served" : std::string(link.status().message()));
  });
  EXPECT_THAT(other.Line(), AllOf(HasSubstr("a process of another pid "
                                            "namespace: end it by restarting"),
                                  Not(HasSubstr("kill"))));
  BeServedWith("slab/2");
  EXPECT_EQ(Status().entries, 2U);
  // A keeper that takes this one's place knows the process, too.
  const std::unique_ptr<component::Program> old = std::move(keeper_);
  StartAs(component::InPidNamespace(
              {GMB_KEEPER_PROGRAM, "--socket", socket(), "--replace"}),
          "next");
  EXPECT_EQ(old->AwaitExit(), 0) << old->Err();
  HangUp();
  BeServedWith("slab/3");
  EXPECT_EQ(Status().entries, 3U);
}

// `kill -KILL 0` would end the group of whoever says it.
TEST_F(NamespaceTest, NoCommandNamesABrokerByAPidThatIsNone) {
  const auto expect_no_pid = [&](const std::string& said) {
    EXPECT_THAT(said, AllOf(HasSubstr("in another pid namespace"),
                            Not(HasSubstr("pid 0")), Not(HasSubstr("kill -"))));
  };
  Forked peer([](const auto&) {});
  Forked broker([&](const auto& say) {
    auto link = KeeperLink::Connect(AsBroker());
    const base::UniqueFd pidfd = PidfdOf(peer.pid());
    say(link.ok() && Put(&*link, "session/1", "", {pidfd.get()}, 0).ok()
            ? "put"
            : "failed");
    while (true) ::pause();
  });
  ASSERT_EQ(broker.Line(), "put");
  expect_no_pid(Gmb({"keeper", "status", "--socket", socket()}));
  expect_no_pid(Doctor());
  peer.Kill();
  const std::string stopped = Doctor();
  expect_no_pid(stopped);
  EXPECT_THAT(stopped, HasSubstr("sessions of ended processes are kept"));
  broker.Kill();
  ASSERT_TRUE(component::Await(
      [&] { return Status().broker == KeeperStatus::Broker::kDead; }));
  expect_no_pid(Doctor());
  BeServedWith("slab/1");
  HangUp();
  const std::string hung_up = Doctor();
  expect_no_pid(hung_up);
  EXPECT_THAT(hung_up, HasSubstr("end it by restarting its container"));
}

}  // namespace
}  // namespace gmb::keeper
