// Ten thousand connections, and as many sessions as there may be.
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "gmb/error.h"
#include "ipc/seqpacket.h"
#include "ipc/socket_path.h"
#include "tests/component/component_test.h"
#include "tests/component/raw_session.h"

namespace gmb::component {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

class ManyConnectionsTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    MakeTenant("a");
    MakeTenant("b");
    before_ = Settle();
  }
  void TearDown() override {
    ExpectServed("b");
    ExpectBackTo(before_);
    ComponentTest::TearDown();
  }

  Footprint before_;
};

// How many this process may hold open at once.
size_t RaiseOwnFdLimit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

TEST_F(ManyConnectionsTest, TenThousandThatNeverGreetDisturbNobody) {
  constexpr size_t kConnections = 10'000;
  const size_t kept = std::min(kConnections, RaiseOwnFdLimit() - 500);
  const uint64_t resident = broker().ResidentBytes();
  std::vector<ipc::SeqpacketSocket> sockets;
  for (size_t i = 0; i < kConnections; ++i) {
    auto socket = ipc::SeqpacketSocket::Connect(
        i % 2 == 0 ? TenantDir("a") + "/handle.sock"
                   : SocketDir() + "/handle.sock",
        kLong);
    ASSERT_TRUE(socket.ok()) << i << ": " << socket.status();
    if (sockets.size() < kept) {
      sockets.push_back(*std::move(socket));
    } else {
      sockets[i % kept] = *std::move(socket);
    }
    if (i % 2'500 == 0) ExpectServed("b");
  }
  ExpectServed("b");
  EXPECT_LT(broker().OpenFds(), before_.fds + 1'000);
  if (!kInstrumented) {
    EXPECT_LT(broker().ResidentBytes(), resident + 64 * kMiB);
  }
}

// The gRPC socket, which everybody can reach: a flood has no part in anybody
// else's service, neither while it lasts nor afterwards.
TEST_F(ManyConnectionsTest, AFloodOfTheGrpcSocketDisturbsNobody) {
  constexpr size_t kConnections = 4'000;
  const auto address = ipc::SocketAddress(SocketDir() + "/gmb.sock");
  ASSERT_TRUE(address.ok());
  // So few that they would be used up, had the broker no limit of its own.
  const rlimit few{.rlim_cur = 2'000, .rlim_max = 2'000};
  ASSERT_EQ(::prlimit(broker().program().pid(), RLIMIT_NOFILE, &few, nullptr),
            0);
  (void)RaiseOwnFdLimit();
  // One that has a session before it, and keeps it.
  auto before = RawSession::Open(TenantDir("a"));
  ASSERT_TRUE(before.ok()) << before.status();
  std::vector<base::UniqueFd> flood;
  for (size_t i = 0; i < kConnections; ++i) {
    base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_TRUE(fd.valid()) << i;
    ASSERT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address),
                        sizeof(*address)),
              0)
        << i << ": errno " << errno;
    flood.push_back(std::move(fd));
    if (i % 1'000 == 0) ExpectServed("b");
  }
  ExpectServed("b");
  EXPECT_LT(broker().OpenFds(), before_.fds + 1'000);
  flood.clear();
  ExpectServed("b");
}

TEST_F(ManyConnectionsTest, SessionsBeyondTheTenantsLimitAreRefused) {
  std::vector<RawSession> sessions;
  for (int i = 0; i < 64; ++i) {
    auto session = RawSession::Open(TenantDir("a"));
    ASSERT_TRUE(session.ok()) << i << ": " << session.status();
    sessions.push_back(*std::move(session));
  }
  for (int i = 0; i < 3; ++i) {
    const absl::Status refused = RawSession::Open(TenantDir("a")).status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_EQ(GetErrorDetail(refused).value_or(ErrorDetail()).reason,
              ErrorReason::kTooManySessions);
  }
  ExpectServed("b");
  sessions.pop_back();
  EXPECT_TRUE(Await([this] { return RawSession::Open(TenantDir("a")).ok(); }));
}

}  // namespace
}  // namespace gmb::component
