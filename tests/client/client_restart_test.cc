// The broker dies, and another one takes the session over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "gmb/client.h"
#include "ipc/listener.h"
#include "tests/client/client_fixture.h"

namespace gmb {
namespace {

using ::testing::HasSubstr;
using v1::ClientMessage;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kBytes = 36 * kMiB;  // 5 slabs, 2 frames

class ClientRestartTest : public test::ClientFaultsTest {
 protected:
  static ClientOptions Patient(ClientOptions options) {
    options.answer_timeout = absl::Seconds(60);
    return options;
  }

  // The slabs of a lease come, and no Grant; then another broker is asked.
  // `whole`: all of its slabs, so that the client maps them meanwhile.
  void AskTwice(bool whole) {
    const auto client = ConnectOrDie(Patient(Options()));
    { const Lease opens_the_device = *client->Acquire(2 * kMiB); }
    std::promise<void> sent;
    OnAcquire([&](const ClientMessage& message) {
      if (whole) {
        broker().DropSlabs(broker().MakeLease(message).grant().lease_id());
      } else {
        SendHalf(message);
      }
      sent.set_value();
    });
    std::future<absl::StatusOr<Lease>> asked = std::async(
        std::launch::async, [&client] { return client->Acquire(kBytes); });
    sent.get_future().wait();
    broker().GoAway();
    BehaveAgain();
    broker().ComeBack();
    absl::StatusOr<Lease> lease = asked.get();
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_TRUE(broker().WaitUntil([&] {
      return broker().FreeBytes() == 256 * kMiB - kBytes;
    })) << "the lost one is not held";
    std::memset(lease->data(), 'a', kBytes);
    EXPECT_TRUE(std::move(*lease).Release().ok());
    EXPECT_TRUE(broker().WaitUntil([&] {
      return broker().FreeBytes() == 256 * kMiB;
    })) << "it was the other one that was mapped";
  }
  void SendHalf(const ClientMessage& request) {
    v1::BrokerFrame frame;
    frame.mutable_slabs()->set_lease_id(99);
    frame.mutable_slabs()->set_request_id(request.request_id());
    frame.mutable_slabs()->set_slabs_in_lease(2);
    frame.mutable_slabs()->add_slab_bytes(2 * kMiB);
    const base::UniqueFd fd(memfd_create("slab", MFD_CLOEXEC));
    broker().SendFrame(frame, {fd.get()});
  }
};

TEST_F(ClientRestartTest, ASessionOutlivesItsBrokersAbsence) {
  StartBroker();
  const auto client = ConnectOrDie(Patient(Options()));
  Lease lease = *client->Acquire(kBytes);
  std::memset(lease.data(), 'a', kBytes);
  broker().GoAway();
  std::future<absl::StatusOr<Lease>> asked = std::async(
      std::launch::async, [&client] { return client->Acquire(kBytes); });
  std::memset(lease.data(), 'b', kBytes);
  broker().ComeBack();
  absl::StatusOr<Lease> second = asked.get();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(static_cast<char*>(lease.data())[kBytes - 1], 'b');
  EXPECT_TRUE(client->status().ok());
  EXPECT_TRUE(std::move(lease).Release().ok());
  EXPECT_TRUE(std::move(*second).Release().ok());
  EXPECT_EQ(broker().open_sessions(), 1);
}

// An upgrade, and the way back to a release that knew gRPC's streams alone.
TEST_F(ClientRestartTest, ABrokerThatKnowsNoStreamsOfPacketsIsSpokenToByGrpc) {
  StartBroker();
  const auto client = ConnectOrDie(Patient(Options()));
  const int before = broker().packet_streams();
  EXPECT_EQ(before, test::FakeBroker::OnlyGrpc() ? 0 : 1);
  broker().GoAway();
  broker().ComeBack(/*takes_packets=*/false);
  const absl::StatusOr<Lease> first = client->Acquire(2 * kMiB);
  EXPECT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(broker().packet_streams(), before);
  broker().GoAway();
  broker().ComeBack();
  const absl::StatusOr<Lease> second = client->Acquire(2 * kMiB);
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(broker().packet_streams(), 2 * before);
  EXPECT_EQ(broker().open_sessions(), 1);
}

TEST_F(ClientRestartTest, CallsWaitForItUntilTheirDeadlineAndThenSaySo) {
  StartBroker();
  const auto client = ConnectOrDie(ImpatientOptions());
  broker().GoAway();
  for (const bool acquire : {false, true}) {
    const absl::Status late = acquire ? client->Acquire(kBytes).status()
                                      : client->GetQuota().status();
    EXPECT_TRUE(absl::IsUnavailable(late)) << late;
    EXPECT_THAT(std::string(late.message()),
                testing::AllOf(HasSubstr("it is away"), HasSubstr(dir()),
                               HasSubstr("the session lives")));
  }
  EXPECT_TRUE(client->status().ok());
  broker().ComeBack();
  EXPECT_TRUE(InTime([&] { return client->GetQuota(); }).ok());
  EXPECT_TRUE(broker().WaitUntil([&] { return broker().leases() == 0; }))
      << "what was given up in its absence is not leased";
}

TEST_F(ClientRestartTest, ABrokerThatMayBeOnItsWayBackIsTriedOften) {
  StartBroker();
  const auto client = ConnectOrDie();
  broker().GoAway();
  absl::StatusOr<ipc::Listener> nobody = ipc::Listener::Listen(
      dir() + "/gmb.sock", 0600, ipc::SocketType::kStream);
  ASSERT_TRUE(nobody.ok()) << nobody.status();
  int tries = 0;
  // With waits of up to a second it would take some 17 s.
  EXPECT_TRUE(broker().WaitUntil([&] {
    const auto connection = nobody->TryAccept();
    if (connection.ok() && connection->has_value()) ++tries;
    return tries + broker().turned_away() >= 20;
  })) << tries;
  EXPECT_TRUE(client->status().ok());
}

// How often the clients of two directories come, while nobody serves there.
std::pair<int, int> TriesBeside(const test::FakeBroker& a,
                                const test::FakeBroker& b, int tries_of_b) {
  const auto listen = [](const test::FakeBroker& broker) {
    return *ipc::Listener::Listen(broker.dir() + "/gmb.sock", 0600,
                                  ipc::SocketType::kStream);
  };
  ipc::Listener at_a = listen(a);
  ipc::Listener at_b = listen(b);
  const std::pair<int, int> before = {a.turned_away(), b.turned_away()};
  std::pair<int, int> by_grpc;
  const auto count = [](ipc::Listener& listener, int* came) {
    const auto connection = listener.TryAccept();
    if (connection.ok() && connection->has_value()) ++*came;
  };
  std::pair<int, int> tries;
  while (tries.second < tries_of_b) {
    count(at_a, &by_grpc.first);
    count(at_b, &by_grpc.second);
    tries = {by_grpc.first + a.turned_away() - before.first,
             by_grpc.second + b.turned_away() - before.second};
    std::this_thread::yield();
  }
  return tries;
}

TEST_F(ClientRestartTest, ASessionWhoseCallWaitsComesBeforeThoseWithoutOne) {
  char other[] = "/tmp/gmb-client-XXXXXX";
  const std::string idle_dir = mkdtemp(other);
  bool was_eager = false;
  {
    test::FakeBroker idle_broker(idle_dir);
    StartBroker();
    ClientOptions options = Patient(Options());
    options.socket_dir = idle_dir;
    const auto idle = ConnectOrDie(options);
    const auto client = ConnectOrDie(Patient(Options()));
    // Not asserted of one absence: this process may have stood still in it.
    for (int absence = 0; absence < 20 && !was_eager; ++absence) {
      EXPECT_TRUE(client->GetQuota().ok());
      EXPECT_TRUE(idle->GetQuota().ok());
      broker().GoAway();
      idle_broker.GoAway();
      std::future<bool> asked = std::async(
          std::launch::async, [&client] { return client->GetQuota().ok(); });
      const auto [eager, idly] = TriesBeside(broker(), idle_broker, 8);
      was_eager = eager >= 2 * idly;
      broker().ComeBack();
      idle_broker.ComeBack();
      EXPECT_TRUE(asked.get());
    }
  }
  std::filesystem::remove_all(idle_dir);
  EXPECT_TRUE(was_eager);
}

TEST_F(ClientRestartTest, SlabsOfALeaseMayComeAgain) {
  StartBroker();
  const auto client = ConnectOrDie();
  ClientMessage request;
  OnAcquire([&](const ClientMessage& message) {
    request = message;
    broker().Serve(message);
  });
  Lease lease = *client->Acquire(kBytes);
  std::memset(lease.data(), 'a', kBytes);
  const int acknowledged = broker().acknowledged();
  broker().GoAway();
  broker().ComeBack();
  const v1::BrokerMessage again = broker().MakeLease(request);
  ASSERT_TRUE(broker().WaitUntil(
      [&] { return broker().acknowledged() == acknowledged + 2; }));
  ASSERT_TRUE(client->GetQuota().ok());  // the stream is there again
  broker().Say(again);
  EXPECT_TRUE(client->GetQuota().ok());
  broker().DropSlabs(again.grant().lease_id());
  EXPECT_TRUE(broker().WaitUntil([&] {
    return broker().FreeBytes() == 256 * kMiB - kBytes;
  })) << "they are not held";
  EXPECT_EQ(static_cast<char*>(lease.data())[kBytes - 1], 'a');
  EXPECT_TRUE(client->status().ok());
}

// The broker died before it recorded the lease: another one makes its own.
TEST_F(ClientRestartTest, AHalfLeaseMakesWayForTheOneThatIsGranted) {
  StartBroker({.slabs_in_frame = 3});
  AskTwice(/*whole=*/false);
}

TEST_F(ClientRestartTest, AMappedLeaseMakesWayForTheOneThatIsGranted) {
  StartBroker({.slabs_in_frame = 5});
  AskTwice(/*whole=*/true);
}

TEST_F(ClientRestartTest, WhatCouldBeTrimmedIsSaidAgain) {
  StartBroker();
  const auto client = ConnectOrDie(Patient(Options()));
  const auto told = [&] {
    return broker().Count(ClientMessage::kSetTrimmable);
  };
  ASSERT_TRUE(client->SetTrimmable("", 5).ok());
  ASSERT_TRUE(broker().WaitUntil([&] { return told() == 1; }));
  ASSERT_TRUE(client->GetQuota().ok());
  broker().GoAway();
  broker().ComeBack();
  EXPECT_TRUE(broker().WaitUntil([&] { return told() == 2; }));
}

TEST_F(ClientRestartTest, ABrokerThatDoesNotKnowTheSessionEndsIt) {
  StartBroker();
  const auto client = ConnectOrDie();
  broker().GoAway();
  broker().HangUp();
  EXPECT_TRUE(broker().WaitUntil([&] { return !client->status().ok(); }));
  EXPECT_THAT(std::string(client->status().message()),
              HasSubstr("the broker hung up"));
}

}  // namespace
}  // namespace gmb
