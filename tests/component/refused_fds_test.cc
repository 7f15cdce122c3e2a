// No socket of the broker takes file descriptors: whoever sends some is stopped
// by the kernel where it can do that, and elsewhere they are never received.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "ipc/foreign_fds.h"
#include "ipc/socket_path.h"
#include "tests/component/component_test.h"
#include "tests/ipc/send_fd.h"

namespace gmb::component {
namespace {

bool ThisKernelRefuses() {
  const base::UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ipc::RefuseFds(probe.get());
}

base::UniqueFd ConnectTo(const std::string& path, int type) {
  base::UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const absl::StatusOr<sockaddr_un> address = ipc::SocketAddress(path);
  EXPECT_TRUE(address.ok() &&
              ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address),
                        sizeof(*address)) == 0)
      << path;
  return fd;
}

// Reads on to the end of what the broker says.
bool IsHungUp(const base::UniqueFd& socket) {
  std::array<char, 4096> said{};
  ssize_t got = 0;
  do {
    got = ::recv(socket.get(), said.data(), said.size(), MSG_DONTWAIT);
  } while (got > 0);
  return got == 0 || errno == ECONNRESET;
}

class RefusedFdsTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    MakeTenant("a");
    marker_ = base::UniqueFd(
        ::open(MarkerPath().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_TRUE(marker_.valid());
  }
  [[nodiscard]] std::string MarkerPath() const {
    return Directory() + "/marker";
  }
  [[nodiscard]] bool BrokerHasMarker() {
    const std::string fds =
        absl::StrCat("/proc/", broker().program().pid(), "/fd");
    for (const auto& fd : std::filesystem::directory_iterator(fds)) {
      std::error_code gone;
      if (std::filesystem::read_symlink(fd, gone) == MarkerPath()) return true;
    }
    return false;
  }
  // `hangs_up`: on whoever sends some, where the kernel does not refuse.
  void ExpectTakesNone(const std::string& path, int type, bool hangs_up) {
    SCOPED_TRACE(path);
    const base::UniqueFd socket = ConnectTo(SocketDir() + path, type);
    const int error = gmb::testing::SendFd(socket.get(), 'x', marker_.get());
    if (ThisKernelRefuses()) {
      EXPECT_EQ(error, EPERM);
    } else if (hangs_up) {
      EXPECT_EQ(error, 0);
      EXPECT_TRUE(Await([&] { return IsHungUp(socket); }));
      EXPECT_FALSE(BrokerHasMarker());
    }
  }

  base::UniqueFd marker_;
};

TEST_F(RefusedFdsTest, NoSocketTakesFds) {
  for (const std::string directory : {"", "/tenants/a", "/admin"}) {
    ExpectTakesNone(directory + "/handle.sock", SOCK_SEQPACKET, true);
    // Operators' connections are gRPC's own.
    ExpectTakesNone(directory + "/gmb.sock", SOCK_STREAM,
                    directory != "/admin");
  }
  ExpectServed("a");
}

}  // namespace
}  // namespace gmb::component
