// Brokers that `gmb upgrade` leaves alone.
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>

#include "client/session/broker_process.h"
#include "tests/component/pid_namespace.h"
#include "tests/component/restart_fixture.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class UpgradeRefusedTest : public RestartFixture {
 protected:
  // A drain lasts until the client, of the tenant a, has gone.
  std::unique_ptr<Client> StartWithAClient() {
    BrokerOptions options = Options();
    options.drain_deadline = "10m";
    StartBroker(options);
    MakeTenant("a");
    return ConnectAs("a");
  }
  void ExpectDrained() {
    EXPECT_EQ(broker().program().AwaitExit(), 4) << broker().Log();
    EXPECT_EQ(Serving(), 0) << "nobody was to start another one";
    StartBroker(Options());  // which the end of the test stops
  }
  [[nodiscard]] pid_t Serving() const {
    const auto found = internal::FindBrokerProcess(SocketDir());
    return found.ok() ? found->pid : 0;
  }
};

TEST_F(UpgradeRefusedTest, OneThatDrains) {
  auto client = StartWithAClient();
  const auto drain = StartGmb("drain", {"drain", "--yes", "--wait", "10m"});
  ASSERT_TRUE(Await([&] { return Status().draining(); }));
  // A second one waits as the first one does.
  const Said again = Gmb({"drain", "--yes", "--wait", "100ms"});
  EXPECT_EQ(again.exit_code, 3) << again.err;
  EXPECT_THAT(again.err,
              AllOf(HasSubstr("still draining"),
                    HasSubstr(absl::StrCat("kill ", broker().program().pid())),
                    Not(HasSubstr("drain_deadline"))));
  for (const std::string word : {"--check", "--wait=10s"}) {
    const Said refused = Gmb({"upgrade", word});
    EXPECT_EQ(refused.exit_code, 1) << refused.err;
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr("nothing was changed"), HasSubstr("drains")));
  }
  client.reset();
  EXPECT_EQ(drain->AwaitExit(), 0) << drain->Err();
  ExpectDrained();
}

TEST_F(UpgradeRefusedTest, OneThatBeginsToDrainWhileTheNewProgramIsProven) {
  auto client = StartWithAClient();
  const std::string program = Directory() + "/gmbd-new";
  const std::string gmb =
      absl::StrCat(GMB_PROGRAM, " --socket-dir ", SocketDir());
  std::ofstream(program)
      << "#!/bin/sh\n"
      << gmb << " drain --yes --wait 0s\nwhile " << gmb
      << " status -q; do sleep 0.02; done\necho it could take over\n";
  ::chmod(program.c_str(), 0700);
  const Said refused = Gmb({"upgrade", "--binary", program});
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("nothing was changed"), HasSubstr("drains")));
  client.reset();
  ExpectDrained();
}

// After the last look at it, so that it takes no notice of the next signal.
TEST_F(UpgradeRefusedTest, OneThatBeginsToDrainJustBeforeItIsToDetach) {
  auto client = StartWithAClient();
  Program refused(Directory(), "upgrade",
                  {"env", "LD_PRELOAD=" GMB_DRAINED_FIRST, GMB_PROGRAM,
                   "--socket-dir", SocketDir(), "upgrade"});
  ASSERT_TRUE(Await([&] { return Status().draining(); })) << refused.Err();
  // The drain goes on for as long as the client lives.
  EXPECT_EQ(refused.AwaitExit(), 1) << refused.Err();
  EXPECT_THAT(refused.Err(),
              AllOf(HasSubstr("nothing was changed"), HasSubstr("drains")));
  client.reset();
  ExpectDrained();
}

// It would take the command with it, and the broker that follows.
TEST_F(UpgradeRefusedTest, OneThatIsTheFirstProcessOfAContainer) {
  if (!MayMakePidNamespaces(Directory()))
    GTEST_SKIP() << "no pid namespaces for this user";
  BrokerOptions options = Options();
  options.wrapper = InPidNamespace();
  StartBroker(options);
  const pid_t first = FirstOf(broker().program());
  Program inside(
      Directory(), "inside",
      {"nsenter", absl::StrCat("--target=", first), "--pid", "--mount",
       GMB_PROGRAM, "--socket-dir", SocketDir(), "upgrade"});
  EXPECT_EQ(inside.AwaitExit(), 1);
  EXPECT_THAT(inside.Err(),
              AllOf(HasSubstr("nothing was changed: gmbd, pid 1,"),
                    HasSubstr("whoever runs the container")));
  const Said outside = Gmb({"upgrade"});
  EXPECT_EQ(outside.exit_code, 1);
  EXPECT_THAT(outside.err, HasSubstr("whoever runs the container"));
  EXPECT_EQ(Serving(), first);
  EXPECT_THAT(broker().Log(), Not(HasSubstr(" detached ")));
  ::kill(first, SIGTERM);
  EXPECT_EQ(broker().program().AwaitExit(), 0) << broker().Log();
}

}  // namespace
}  // namespace gmb::component
