// gRPC sockets whose backlog is full for a while or for good, and brokers that
// live, or do not, meanwhile.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "tests/component/by_grpc.h"
#include "tests/component/component_test.h"
#include "tests/component/stand_in.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Every connection of this process to a gRPC socket.
void BreakConnections() {
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    int type = 0;
    socklen_t size = sizeof(type);
    sockaddr_un peer{};
    socklen_t length = sizeof(peer);
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
        type == SOCK_STREAM &&
        ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
        absl::StrContains(peer.sun_path, "gmb.sock")) {
      ::shutdown(fd, SHUT_RDWR);
    }
  }
}

class CrowdedSocketsTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    MakeTenant("a");
  }
  [[nodiscard]] std::string AdminSocket() const {
    return SocketDir() + "/admin/gmb.sock";
  }
  [[nodiscard]] std::string TenantSocket() const {
    return TenantDir("a") + "/gmb.sock";
  }

 private:
  const ByGrpc by_grpc_;
};

TEST_F(CrowdedSocketsTest, TheCommandIsServedOnceTheCrowdIsGone) {
  auto stand_in = std::make_unique<StandIn>(AdminSocket(), 0);
  stand_in->Crowd();
  const auto status = StartGmb("status", {"status"});
  const auto watch = StartGmb("watch", {"watch"});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(stand_in->TurnOneAway());
  stand_in.reset();
  EXPECT_EQ(status->AwaitExit(), 0) << status->Err();
  EXPECT_TRUE(Await([&] {
    ExpectServed("a");
    return !watch->Out().empty() || !watch->IsRunning();
  }));
  watch->Signal(SIGINT);
  EXPECT_EQ(watch->AwaitExit(), 0) << watch->Err();
}

TEST_F(CrowdedSocketsTest, ABrokerWhoseSocketStaysCrowdedHasNotStopped) {
  StandIn stand_in(AdminSocket(), 0);
  stand_in.Crowd();
  const auto status = StartGmb("status", {"status"});
  const auto watch = StartGmb("watch", {"watch"});
  for (Program* const gmb : {status.get(), watch.get()}) {
    EXPECT_EQ(gmb->AwaitExit(), 3);
    EXPECT_THAT(gmb->Err(),
                AllOf(HasSubstr("is there"), HasSubstr(AdminSocket()),
                      HasSubstr("crowded"), Not(HasSubstr("stopped"))));
  }
}

TEST_F(CrowdedSocketsTest, ABrokerWhoseTenantsSocketIsCrowdedIsThere) {
  StandIn stand_in(TenantSocket(), 0);
  stand_in.Crowd();
  const Said said = Gmb({"hold", "--tenant", "a", "--bytes", "2MiB"});
  EXPECT_EQ(said.exit_code, 3);
  EXPECT_THAT(said.err, AllOf(HasSubstr("is there"), HasSubstr("crowded"),
                              Not(HasSubstr("start gmbd"))));
}

// Its call may have been carried out, so it is not made again.
TEST_F(CrowdedSocketsTest,
       AConnectionThatBreaksDoesNotMeanThatTheBrokerStopped) {
  const auto reader = admin().Watch();
  BreakConnections();
  v1::Event event;
  while (reader->Read(&event)) {
  }
  const absl::Status ended = reader->Finish();
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()),
              AllOf(HasSubstr("is there"), Not(HasSubstr("stopped"))));
  EXPECT_TRUE(admin().GetStatus(v1::GetStatusRequest()).ok());
}

TEST_F(CrowdedSocketsTest, ABrokerThatDiesInACrowdHasStopped) {
  StandIn stand_in(AdminSocket(), 0);
  stand_in.Crowd();
  const auto status = StartGmb("status", {"status"});
  EXPECT_TRUE(stand_in.TurnOneAway());  // so it has greeted
  KillBroker();
  EXPECT_EQ(status->AwaitExit(), 3);
  EXPECT_THAT(status->Err(), HasSubstr("has stopped or is stopping"));
}

TEST_F(CrowdedSocketsTest, AClientIsServedOnceTheCrowdIsGone) {
  auto stand_in = std::make_unique<StandIn>(TenantSocket(), 0);
  stand_in->Crowd();
  std::thread client([this] { ExpectServed("a"); });
  EXPECT_TRUE(stand_in->TurnOneAway());
  stand_in.reset();
  client.join();
}

TEST_F(CrowdedSocketsTest, AClientWhoseConnectionBreaksFindsItsWayBack) {
  const auto client = ConnectAs("a");
  auto stand_in = std::make_unique<StandIn>(TenantSocket(), 0);
  stand_in->Crowd();
  BreakConnections();
  std::thread acquire([&] {
    const absl::Status status = client->Acquire(2 * kMiB).status();
    EXPECT_TRUE(status.ok()) << status;
  });
  EXPECT_TRUE(stand_in->TurnOneAway());
  stand_in.reset();
  acquire.join();
}

TEST_F(CrowdedSocketsTest, AClientInACrowdIsToldThatTheBrokerDied) {
  StandIn stand_in(TenantSocket(), 0);
  stand_in.Crowd();
  absl::Status status;
  std::thread client(
      [&] { status = Client::Connect(OptionsFor(TenantDir("a"))).status(); });
  EXPECT_TRUE(stand_in.TurnOneAway());
  KillBroker();
  client.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the broker hung up"));
}

TEST_F(CrowdedSocketsTest, AClientSaysWhatIsCrowdedAndThatItsSessionLives) {
  StandIn stand_in(TenantSocket(), 0);
  stand_in.Crowd();
  ClientOptions options = OptionsFor(TenantDir("a"));
  // Longer where the machine is busy: until it has greeted in time.
  absl::Status status;
  for (options.connect_timeout = absl::Seconds(1);
       options.connect_timeout < absl::Minutes(1) &&
       !absl::IsUnavailable(status);
       options.connect_timeout *= 2) {
    status = Client::Connect(options).status();
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(TenantSocket()), HasSubstr("session lives")));
}

// To connect anew is to go to the end of the queue, and to lengthen it.
TEST_F(CrowdedSocketsTest, AClientKeepsItsPlaceInTheQueue) {
  StandIn stand_in(TenantSocket(), 100);
  ClientOptions options = OptionsFor(TenantDir("a"));
  // Longer where the machine is busy: until it has come so far in time.
  size_t waiting = 0;
  for (options.connect_timeout = absl::Seconds(2);
       options.connect_timeout < absl::Minutes(1) && waiting == 0;
       options.connect_timeout *= 2) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(Client::Connect(options).status()));
    waiting = stand_in.TakeAll();
  }
  EXPECT_EQ(waiting, 1U);
}

}  // namespace
}  // namespace gmb::component
