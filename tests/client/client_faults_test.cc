// The client library with brokers that break, stall and lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmb/client.h"
#include "proto/error_status.h"
#include "tests/client/client_fixture.h"

namespace gmb {
namespace {

using ::testing::HasSubstr;
using v1::ClientMessage;

using ClientFaultsTest = test::ClientFaultsTest;

// --- Connect.

TEST_F(ClientFaultsTest, NobodyListensIsUnavailable) {
  ClientOptions options = Options();
  const absl::Status status = Client::Connect(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir()));
  options.socket_dir = dir() + "/" + std::string(200, 'x');
  EXPECT_TRUE(absl::IsUnavailable(Client::Connect(options).status()));
}

TEST_F(ClientFaultsTest, ABrokerThatNeverGreetsTimesOut) {
  StartBroker();
  broker().OnGreet([](ipc::SeqpacketSocket& socket) {
    EXPECT_FALSE(socket.Receive(absl::Seconds(10)).ok())
        << "until the client hangs up";
  });
  ClientOptions options = Options();
  options.connect_timeout = absl::Milliseconds(50);
  const absl::Status status = Client::Connect(std::move(options)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST_F(ClientFaultsTest, BadGreetingsAreRefused) {
  v1::BrokerFrame good;
  good.mutable_challenge()->set_nonce(std::string(16, 'n'));
  good.mutable_challenge()->set_protocol_version(1);
  v1::BrokerFrame other_version = good;
  other_version.mutable_challenge()->set_protocol_version(2);
  v1::BrokerFrame short_nonce = good;
  short_nonce.mutable_challenge()->set_nonce("n");
  v1::BrokerFrame no_token;
  no_token.mutable_welcome()->set_session_id(1);
  v1::BrokerFrame no_id;
  no_id.mutable_welcome()->set_token(std::string(16, 't'));

  StartBroker();
  const auto greet = [this](std::string first, std::string second) {
    broker().OnGreet([=](ipc::SeqpacketSocket& socket) {
      EXPECT_TRUE(socket.Send(first, {}, false, absl::Seconds(5)).ok());
      if (!socket.Receive(absl::Seconds(5)).ok() || second.empty()) return;
      EXPECT_TRUE(socket.Send(second, {}, false, absl::Seconds(5)).ok());
      EXPECT_FALSE(socket.Receive(absl::Seconds(5)).ok());
    });
    return Client::Connect(Options()).status();
  };
  const std::string challenge = good.SerializeAsString();
  EXPECT_TRUE(absl::IsInternal(greet("\xff\xff garbage", "")));
  EXPECT_TRUE(absl::IsInternal(greet(short_nonce.SerializeAsString(), "")));
  EXPECT_TRUE(absl::IsInternal(greet(challenge, challenge)));
  EXPECT_TRUE(absl::IsInternal(greet(challenge, no_token.SerializeAsString())));
  EXPECT_TRUE(absl::IsInternal(greet(challenge, no_id.SerializeAsString())));
  EXPECT_TRUE(absl::IsUnavailable(greet(challenge, "")))
      << "hung up instead of a welcome";
  const absl::Status version = greet(other_version.SerializeAsString(), "");
  EXPECT_TRUE(absl::IsFailedPrecondition(version));
  EXPECT_THAT(std::string(version.message()), HasSubstr("broker=2 library=1"));
}

TEST_F(ClientFaultsTest, ARefusedGreetingKeepsItsReason) {
  v1::BrokerFrame refusal;
  *refusal.mutable_refused() = proto::ToWireError(
      proto::MakeError(v1::NO_SUCH_TENANT, "no tenant has this token"));
  StartBroker();
  broker().OnGreet([&](ipc::SeqpacketSocket& socket) {
    EXPECT_TRUE(
        socket.Send(refusal.SerializeAsString(), {}, false, absl::Seconds(5))
            .ok());
  });
  const absl::Status status = Client::Connect(Options()).status();
  EXPECT_EQ(status.message(), "no tenant has this token");
  EXPECT_EQ(GetErrorDetail(status)->reason, ErrorReason::kNoSuchTenant);
}

TEST_F(ClientFaultsTest, ATokenThatTheStreamRefusesEndsConnectAtOnce) {
  StartBroker();
  broker().RefuseStreams(
      proto::ToGrpcStatus(proto::MakeError(v1::NO_SESSION, "unknown token")));
  ClientOptions options = Options();
  options.connect_timeout = absl::Seconds(60);
  const absl::Status status = Client::Connect(std::move(options)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(GetErrorDetail(status)->reason, ErrorReason::kNoSession);
  EXPECT_EQ(broker().streams(), 1);
}

TEST_F(ClientFaultsTest, AStreamThatCannotBeOpenedIsUnavailableInTime) {
  StartBroker();
  broker().RefuseStreams(
      grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not here"));
  // Longer where the machine is busy: until a second stream was tried in time.
  ClientOptions options = Options();
  options.connect_timeout = absl::Milliseconds(150);
  absl::Status status;
  int streams = 0;
  while (streams < 2 && options.connect_timeout < absl::Minutes(1)) {
    const int before = broker().streams();
    status = Client::Connect(options).status();
    streams = broker().streams() - before;
    options.connect_timeout *= 2;
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not here"));
  EXPECT_FALSE(GetErrorDetail(status).has_value());
  EXPECT_GT(streams, 1);
}

// A broker would end each stream that says it.
TEST_F(ClientFaultsTest, ANameThatNoMessageHoldsCostsItsCallAlone) {
  StartBroker();
  const auto client = ConnectOrDie();
  AcquireOptions options;
  options.device = std::string(20'000, 'x');
  const absl::Status status = client->Acquire(2 * kMiB, options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("too long"));
  EXPECT_TRUE(client->GetQuota().ok());
  EXPECT_EQ(broker().streams(), 1);
}

TEST_F(ClientFaultsTest, TextThatIsNotUtf8CostsItsCallAlone) {
  StartBroker();
  const auto client = ConnectOrDie();
  AcquireOptions options;
  options.device = "gpu-\xff";
  const absl::Status status = client->Acquire(2 * kMiB, options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("device is not UTF-8: its byte 5"));
  EXPECT_TRUE(absl::IsInvalidArgument(client->Attach("\xc3").status()));
  EXPECT_TRUE(client->GetQuota().ok());
  EXPECT_EQ(broker().streams(), 1);
}

// --- The stream breaks.

TEST_F(ClientFaultsTest, AWaitingAcquireSurvivesABrokenStream) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease before = *client->Acquire(2 * kMiB);
  std::atomic<int> asked = 0;
  std::atomic<uint64_t> first_id = 0;
  OnAcquire([&](const ClientMessage& message) {
    if (++asked == 1) {
      first_id = message.request_id();
      broker().BreakStream();
    } else {
      EXPECT_EQ(message.request_id(), first_id);
      broker().Serve(message);
    }
  });
  EXPECT_TRUE(client->Acquire(4 * kMiB).ok());
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(broker().streams(), 2);
  EXPECT_EQ(broker().open_sessions(), 1);
  EXPECT_TRUE(std::move(before).Release().ok());
}

TEST_F(ClientFaultsTest, AGrantLostWithTheStreamIsAskedForAgainAndMadeOnce) {
  StartBroker();
  const auto client = ConnectOrDie();
  std::atomic<bool> broken = false;
  OnAcquire([&](const ClientMessage& message) {
    if (!broken.exchange(true))
      broker().BreakStream();  // the answer below is written in vain
    broker().Serve(message);
  });
  absl::StatusOr<Lease> lease = client->Acquire(20 * kMiB);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(broker().leases(), 1);
  EXPECT_TRUE(std::move(*lease).Release().ok());
  EXPECT_EQ(broker().FreeBytes(), 256 * kMiB);
}

TEST_F(ClientFaultsTest, AnIdleSessionOpensItsStreamAgain) {
  StartBroker();
  const auto client = ConnectOrDie();
  for (int streams = 2; streams < 6; ++streams) {
    broker().BreakStream();
    EXPECT_TRUE(
        broker().WaitUntil([&] { return broker().streams() == streams; }));
    EXPECT_TRUE(client->GetQuota().ok());
  }
  EXPECT_TRUE(client->status().ok());
}

// --- Silence.

TEST_F(ClientFaultsTest,
       ABrokerThatNeverAnswersTimesOutAndTheLateGrantGoesBack) {
  StartBroker();
  const auto client = ConnectOrDie(ImpatientOptions());
  OnAcquire([](const ClientMessage&) {});
  const absl::Status status = client->Acquire(4 * kMiB).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_FALSE(GetErrorDetail(status).has_value());
  EXPECT_TRUE(broker().WaitUntil(
      [&] { return broker().Count(ClientMessage::kCancel) == 1; }));

  BehaveAgain();
  for (const ClientMessage& message : broker().messages()) {
    if (message.has_acquire()) broker().Serve(message);  // much too late
  }
  EXPECT_TRUE(broker().WaitUntil(
      [&] { return broker().Count(ClientMessage::kRelease) == 1; }));
  EXPECT_TRUE(
      broker().WaitUntil([&] { return broker().FreeBytes() == 256 * kMiB; }));
  EXPECT_TRUE(InTime([&] { return client->Acquire(4 * kMiB); }).ok())
      << "the session lives";
}

TEST_F(ClientFaultsTest, AWithdrawnRequestDoesNotWaitForASilentBroker) {
  StartBroker();
  const auto client = ConnectOrDie();
  std::stop_source stop;
  broker().OnMessage([&](const ClientMessage& message) {
    if (message.has_acquire()) stop.request_stop();
  });
  AcquireOptions options;
  options.wait = absl::Hours(1);
  options.cancel = stop.get_token();
  const absl::Status status = client->Acquire(4 * kMiB, options).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(client->status().ok());
}

TEST_F(ClientFaultsTest, ReleaseAndQuotaTimeOutToo) {
  StartBroker();
  const auto client = ConnectOrDie(ImpatientOptions());
  Lease lease = *InTime([&] { return client->Acquire(4 * kMiB); });
  broker().OnMessage([](const ClientMessage&) {});
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->GetQuota().status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(std::move(lease).Release()));
}

// --- The broker hangs up.

TEST_F(ClientFaultsTest, AfterAHangUpCallsFailAndMemoryStays) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease kept = *client->Acquire(4 * kMiB);
  Lease dropped = *client->Acquire(4 * kMiB);
  std::memset(kept.data(), 0x77, kept.size_bytes());
  broker().HangUp();
  EXPECT_TRUE(broker().WaitUntil([&] { return !client->status().ok(); }));
  const absl::Status status = client->Acquire(4 * kMiB).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("connect again"));
  EXPECT_FALSE(GetErrorDetail(status).has_value());
  EXPECT_TRUE(absl::IsUnavailable(client->GetQuota().status()));
  EXPECT_EQ(static_cast<unsigned char*>(kept.data())[4 * kMiB - 1], 0x77);
  std::memset(kept.data(), 0x78, kept.size_bytes());
  EXPECT_TRUE(std::move(kept).Release().ok()) << "a local matter now";

  const auto again = ConnectOrDie();
  EXPECT_TRUE(again->Acquire(4 * kMiB).ok());
  EXPECT_EQ(static_cast<char*>(dropped.data())[0], 0);
}

TEST_F(ClientFaultsTest, AHangUpMidwayFailsTheWaitingAcquires) {
  StartBroker();
  const auto client = ConnectOrDie();
  constexpr int kThreads = 4;
  std::atomic<int> arrived = 0;
  OnAcquire([&](const ClientMessage& message) {
    broker().MakeLease(message);  // slabs come, the grant never does
    if (++arrived == kThreads) broker().HangUp();
  });
  std::atomic<int> unavailable = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      if (absl::IsUnavailable(client->Acquire(9 * kMiB).status()))
        ++unavailable;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(unavailable, kThreads);
  EXPECT_TRUE(broker().WaitUntil([&] {
    return broker().FreeBytes() == 256 * kMiB;
  })) << "slabs that came are closed, though the client lives on";
}

TEST_F(ClientFaultsTest, ABrokerThatDiesIsAHangUp) {
  StartBroker();
  const auto client = ConnectOrDie();
  Lease lease = *client->Acquire(4 * kMiB);
  OnAcquire([](const ClientMessage&) {});
  absl::Status status;
  std::thread waiting([&] { status = client->Acquire(4 * kMiB).status(); });
  EXPECT_TRUE(broker().WaitUntil(
      [&] { return broker().Count(ClientMessage::kAcquire) == 2; }));
  StopBroker();
  waiting.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  std::memset(lease.data(), 1, lease.size_bytes());
}

}  // namespace
}  // namespace gmb
