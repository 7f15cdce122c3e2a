#include "broker/doors/acceptor.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "ipc/socket_path.h"
#include "tests/ipc/temporary_directory.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;

// Time is the test's own.
class AcceptorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        acceptor_.Add(PathOf("a"), 0600, {Origin::kTenantDirectory, "a"}).ok());
    ASSERT_TRUE(
        acceptor_.Add(PathOf("b"), 0600, {Origin::kTenantDirectory, "b"}).ok());
  }
  std::string PathOf(const std::string& tenant) const {
    return directory_.File(tenant);
  }
  void Connect(const std::string& tenant, int times) {
    const auto address = ipc::SocketAddress(PathOf(tenant));
    ASSERT_TRUE(address.ok());
    for (int i = 0; i < times; ++i) {
      base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ASSERT_EQ(
          ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address),
                    sizeof(*address)),
          0);
      clients_.push_back(std::move(fd));
    }
  }
  // Serves listeners as long as one has something; whose connections came.
  std::string Serve() {
    std::string came;
    epoll_event event{};
    while (::epoll_wait(epoll_.fd(), &event, 1, 0) == 1) {
      for (const Accepted& accepted :
           acceptor_.Accept(ipc::EpollTag::Unpack(event.data.u64).id, now_))
        came += accepted.door.tenant;
    }
    return came;
  }

  const testing::TemporaryDirectory directory_;
  const std::unique_ptr<ipc::FdDisposer> disposer_ = *ipc::FdDisposer::Start();
  ipc::EpollSet epoll_ = *ipc::EpollSet::Create();
  Acceptor acceptor_{&epoll_, ipc::SocketType::kStream, disposer_.get(),
                     AcceptPace{.at_once = 20, .a_second = 100}};
  Acceptor::Time now_{std::chrono::hours(1)};
  std::vector<base::UniqueFd> clients_;
};

TEST_F(AcceptorTest, AListenerRestsThatCameTooFastAndNoOther) {
  Connect("a", 50);
  EXPECT_EQ(Serve(), std::string(20, 'a'));
  Connect("b", 3);
  EXPECT_EQ(Serve(), "bbb");
  ASSERT_TRUE(acceptor_.wakes_at().has_value());
  EXPECT_LE(*acceptor_.wakes_at(), now_ + milliseconds(20));
}

TEST_F(AcceptorTest, ItGoesOnAtItsPace) {
  Connect("a", 50);
  (void)Serve();
  size_t came = 0;
  for (int i = 0; i < 100; ++i) {  // 100 times 2 ms, 100 a second
    now_ += milliseconds(2);
    acceptor_.OnTime(now_);
    came += Serve().size();
  }
  EXPECT_GE(came, 19U);
  EXPECT_LE(came, 21U);
  now_ += std::chrono::seconds(1);
  acceptor_.OnTime(now_);
  EXPECT_EQ(Serve(), std::string(50 - 20 - came, 'a'));
  EXPECT_FALSE(acceptor_.wakes_at().has_value());
}

TEST_F(AcceptorTest, AConnectionNowAndThenCostsNoPace) {
  for (int i = 0; i < 40; ++i) {
    Connect("a", 1);
    EXPECT_EQ(Serve(), "a");
    now_ += milliseconds(10);
  }
  EXPECT_FALSE(acceptor_.wakes_at().has_value());
}

TEST_F(AcceptorTest, OneThatRestsCanBeRemoved) {
  Connect("a", 30);
  (void)Serve();
  EXPECT_TRUE(acceptor_.Remove(PathOf("a")).ok());
  EXPECT_FALSE(acceptor_.wakes_at().has_value());
}

}  // namespace
}  // namespace gmb::broker
