// The news that systemd is told by its protocol: that the start is over, that
// the broker is alive, and that it ends.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/unique_fd.h"
#include "ipc/socket_path.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

// The manager's end of it.
class Notifications {
 public:
  explicit Notifications(std::string path) : path_(std::move(path)) {
    const absl::StatusOr<sockaddr_un> address = ipc::SocketAddress(path_);
    EXPECT_TRUE(address.ok()) << address.status();
    if (!address.ok()) return;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&*address),
                     sizeof(*address)),
              0);
  }
  // The lines that have come since, joined by spaces.
  std::string Take() {
    std::string said;
    char text[256];
    for (ssize_t got = 0;
         (got = ::recv(fd_.get(), text, sizeof(text), MSG_DONTWAIT)) > 0;)
      absl::StrAppend(&said, absl::string_view(text, got), " ");
    return said;
  }
  bool Await(const std::string& lines) {
    std::string said;
    return component::Await([&] {
      said += Take();
      return absl::StrContains(said, lines);
    });
  }
  // A program below it, which is watched.
  [[nodiscard]] std::vector<std::string> Wrapper() const {
    return {"env", "NOTIFY_SOCKET=" + path_, "WATCHDOG_USEC=2000000"};
  }

 private:
  const std::string path_;
  const base::UniqueFd fd_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

class ServiceManagerTest : public ComponentTest {
 protected:
  void StartWatched() {
    BrokerOptions options;
    options.drain_deadline = "5s";
    options.wrapper = manager_.Wrapper();
    StartBroker(options);
  }

  Notifications manager_{Directory() + "/notify"};
};

TEST_F(ServiceManagerTest, HearsOfTheStartOfTheBrokersLifeAndOfItsEnd) {
  StartWatched();
  EXPECT_TRUE(manager_.Await("READY=1 WATCHDOG=1 "));
  EXPECT_TRUE(manager_.Await("WATCHDOG=1 "));
  StopBroker();
  // The drain's deadline and a minute.
  EXPECT_TRUE(manager_.Await("STOPPING=1\nEXTEND_TIMEOUT_USEC=65000000 "));
}

// As where its threads hang: nobody who connects is answered.
TEST_F(ServiceManagerTest, IsNotToldOfALifeThatOperatorsDoNotSee) {
  StartWatched();
  EXPECT_TRUE(manager_.Await("WATCHDOG=1 "));
  std::filesystem::remove(SocketDir() + "/admin/gmb.sock");
  const auto failures = [this] {
    const std::string log = broker().Log();
    return std::vector<std::string>(absl::StrSplit(log, "not_alive")).size();
  };
  ASSERT_TRUE(Await([&] { return failures() > 1; }));
  (void)manager_.Take();
  const size_t seen = failures();
  ASSERT_TRUE(Await([&] { return failures() > seen; }));
  EXPECT_EQ(manager_.Take(), "");
}

TEST_F(ServiceManagerTest, HearsOfTheKeeperOnceItListens) {
  const std::string socket = Directory() + "/keeper/keeper.sock";
  std::vector<std::string> command = manager_.Wrapper();
  command.insert(command.end(), {GMB_KEEPER_PROGRAM, "--socket", socket});
  const Program keeper(Directory(), "gmb-keeper", command);
  ASSERT_TRUE(manager_.Await("READY=1 "));
  EXPECT_TRUE(std::filesystem::exists(socket));
}

}  // namespace
}  // namespace gmb::component
