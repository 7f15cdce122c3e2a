// A session's stream as packets, spoken by hand: what gRPC would carry, and what
// a hostile process may do with it. Nothing of it costs more than that stream.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmb/error.h"
#include "tests/component/component_test.h"
#include "tests/component/raw_session.h"

namespace gmb::component {
namespace {

class PacketStreamsTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    MakeTenant("a");
    MakeTenant("b");
  }
  RawPacketStream Open(const RawSession& session,
                       const std::string& tenant = "a") const {
    return {TenantDir(tenant), session.welcome.token()};
  }
  static v1::ClientMessage QuotaMessage(uint64_t id) {
    v1::ClientMessage message;
    message.set_request_id(id);
    message.mutable_get_quota();
    return message;
  }
  static bool Answers(RawPacketStream* stream, uint64_t id) {
    if (!stream->Send(QuotaMessage(id))) return false;
    const auto answer = stream->ReceiveAnswer(id);
    return answer.has_value() && answer->has_quota_report();
  }
};

std::string ReasonOf(const absl::Status& status) {
  const auto detail = GetErrorDetail(status);
  return detail.has_value() ? ErrorReasonName(detail->reason) : "";
}

TEST_F(PacketStreamsTest, ALeaseIsGrantedUsedAndReleased) {
  RawSession session = RawSession::Open(TenantDir("a")).value();
  RawPacketStream stream = Open(session);
  ASSERT_TRUE(stream.Send(AcquireMessage(1, 2 * kMiB)));
  std::vector<base::UniqueFd> fds;
  ASSERT_TRUE(session.TakeSlabs(&fds).ok());
  EXPECT_EQ(fds.size(), 1U);
  const auto grant = stream.ReceiveAnswer(1);
  ASSERT_TRUE(grant.has_value() && grant->has_grant());
  ASSERT_TRUE(stream.Send(ReleaseMessage(2, grant->grant().lease_id())));
  const auto released = stream.ReceiveAnswer(2);
  EXPECT_TRUE(released.has_value() && released->has_released());
}

TEST_F(PacketStreamsTest, OneThatBreaksIsFollowedByAnotherWithTheSameAnswers) {
  RawSession session = RawSession::Open(TenantDir("a")).value();
  uint64_t lease = 0;
  {
    RawPacketStream stream = Open(session);
    ASSERT_TRUE(stream.Send(AcquireMessage(1, 2 * kMiB)));
    ASSERT_TRUE(session.TakeSlabs().ok());
    const auto grant = stream.ReceiveAnswer(1);
    ASSERT_TRUE(grant.has_value());
    lease = grant->grant().lease_id();
  }
  RawPacketStream stream = Open(session);
  ASSERT_TRUE(stream.Send(AcquireMessage(1, 2 * kMiB)));
  const auto again = stream.ReceiveAnswer(1);
  ASSERT_TRUE(again.has_value() && again->has_grant());
  EXPECT_EQ(again->grant().lease_id(), lease);
  EXPECT_EQ(Settle().leases, 1U);
}

TEST_F(PacketStreamsTest, ANewStreamReplacesTheOldOneOfEitherKind) {
  const RawSession session = RawSession::Open(TenantDir("a")).value();
  RawPacketStream first = Open(session);
  ASSERT_TRUE(Answers(&first, 1));
  RawPacketStream second = Open(session);
  ASSERT_TRUE(Answers(&second, 2));
  EXPECT_TRUE(absl::IsAborted(first.Finish()));

  const auto by_grpc = session.OpenStream(TenantDir("a"));
  ASSERT_TRUE(by_grpc->Send(QuotaMessage(3)));
  ASSERT_TRUE(by_grpc->ReceiveAnswer(3).has_value());
  EXPECT_TRUE(absl::IsAborted(second.Finish()));
  RawPacketStream third = Open(session);
  ASSERT_TRUE(Answers(&third, 4));
  EXPECT_TRUE(absl::IsAborted(by_grpc->Finish()));
}

TEST_F(PacketStreamsTest, AClientThatHasSaidAllGetsItsAnswers) {
  const RawSession session = RawSession::Open(TenantDir("a")).value();
  RawPacketStream stream = Open(session);
  ASSERT_TRUE(stream.Send(QuotaMessage(1)));
  ASSERT_EQ(::shutdown(stream.socket().fd(), SHUT_WR), 0);
  EXPECT_TRUE(stream.ReceiveAnswer(1).has_value());
  EXPECT_TRUE(absl::IsUnavailable(stream.Finish()));
}

TEST_F(PacketStreamsTest, ATokenCountsForItsProcessAtItsDirectoryAlone) {
  const RawSession session = RawSession::Open(TenantDir("a")).value();
  EXPECT_TRUE(absl::IsUnavailable(Open(session, "b").Finish()));
  {
    const RawSession other = RawSession::Open(TenantDir("b")).value();
    EXPECT_EQ(ReasonOf(Open(session, "b").Finish()), "NO_SESSION");
  }
  EXPECT_EQ(
      ReasonOf(RawPacketStream(SocketDir() + "/admin", session.welcome.token())
                   .Finish()),
      "NO_SESSION");
  for (const std::string& token :
       {std::string(), std::string(16, 'x'), std::string(1000, 'x')}) {
    EXPECT_EQ(ReasonOf(RawPacketStream(TenantDir("a"), token).Finish()),
              "NO_SESSION");
  }
  const RawSession operators = RawSession::Open(SocketDir() + "/admin").value();
  EXPECT_EQ(ReasonOf(RawPacketStream(SocketDir() + "/admin",
                                     operators.welcome.token())
                         .Finish()),
            "BAD_STATE");
  RawPacketStream stream = Open(session);
  EXPECT_TRUE(Answers(&stream, 1));
}

TEST_F(PacketStreamsTest, AChildOfTheProcessMayNotOpenOne) {
  const RawSession session = RawSession::Open(TenantDir("a")).value();
  const std::string dir = TenantDir("a");
  const pid_t child = ::fork();
  if (child == 0) {
    RawPacketStream stream(dir, session.welcome.token());
    ::_exit(absl::IsUnavailable(stream.Finish()) ? 0 : 1);
  }
  int code = -1;
  ASSERT_EQ(::waitpid(child, &code, 0), child);
  EXPECT_EQ(code, 0);
  RawPacketStream stream = Open(session);
  EXPECT_TRUE(Answers(&stream, 1));
}

TEST_F(PacketStreamsTest, WhatIsNoMessageEndsTheStreamAlone) {
  const RawSession session = RawSession::Open(TenantDir("a")).value();
  v1::ClientFrame large;
  large.mutable_message()->mutable_drop()->set_name(
      std::string(size_t{8} * 1024, 'x'));
  v1::ClientFrame hello;
  hello.mutable_hello()->set_protocol_version(1);
  const std::vector<std::string> bad = {
      "\xff\xff\xff", hello.SerializeAsString(),
      AckFrame(1).SerializeAsString(), large.SerializeAsString(),
      std::string(size_t{60} * 1024, '\0')};
  uint64_t id = 0;
  for (const std::string& bytes : bad) {
    RawPacketStream stream = Open(session);
    ASSERT_TRUE(Answers(&stream, ++id));
    ASSERT_TRUE(stream.SendBytes(bytes));
    const absl::Status end = stream.Finish();
    if (bytes.size() > size_t{8} * 1024) {
      EXPECT_TRUE(absl::IsResourceExhausted(end)) << end;
    } else {
      EXPECT_EQ(ReasonOf(end), "BAD_REQUEST") << end;
    }
  }
  RawPacketStream stream = Open(session);
  EXPECT_TRUE(Answers(&stream, ++id));
}

TEST_F(PacketStreamsTest, FdsEndTheStreamAndAreNotTaken) {
  const Footprint before = Settle();
  {
    const RawSession session = RawSession::Open(TenantDir("a")).value();
    RawPacketStream stream = Open(session);
    ASSERT_TRUE(Answers(&stream, 1));
    v1::ClientFrame frame;
    *frame.mutable_message() = QuotaMessage(2);
    // Linux 6.16 and later refuse it.
    if (stream.SendBytes(frame.SerializeAsString(), {0, 1, 2})) {
      EXPECT_EQ(ReasonOf(stream.Finish()), "BAD_REQUEST");
      RawPacketStream next = Open(session);
      EXPECT_TRUE(Answers(&next, 3));
    }
  }
  ExpectBackTo(before);
}

// Its answers fill its socket and then wait in the broker, which stops reading
// it: the broker's memory does not grow, and others are served.
TEST_F(PacketStreamsTest, AClientThatDoesNotReadIsNotReadEither) {
  const RawSession session = RawSession::Open(TenantDir("a")).value();
  RawPacketStream stream = Open(session);
  uint64_t sent = 0;
  uint64_t refused_in_a_row = 0;
  while (sent < 100'000 && refused_in_a_row < 200) {
    if (stream.Send(QuotaMessage(sent + 1))) {
      ++sent;
      refused_in_a_row = 0;
    } else {
      ++refused_in_a_row;
      absl::SleepFor(absl::Milliseconds(1));  // room may come: a pace, no wait
    }
  }
  EXPECT_LT(sent, 5'000U);
  const auto other = ConnectAs("b");
  ASSERT_NE(other, nullptr);
  EXPECT_TRUE(other->GetQuota().ok());
  // And when it reads at last, it has all its answers.
  for (uint64_t id = 1; id <= sent; ++id)
    ASSERT_TRUE(stream.ReceiveAnswer(id).has_value()) << id;
  EXPECT_TRUE(Answers(&stream, sent + 1));
}

// Each of these counts as 63: 350 are 22,050, of which 10,000 are read at once
// and the others at 20,000 a second.
TEST_F(PacketStreamsTest, LongMessagesAreReadAtTheSlowerPace) {
  const RawSession session = RawSession::Open(TenantDir("a")).value();
  RawPacketStream stream = Open(session);
  ASSERT_TRUE(Answers(&stream, 1));
  v1::ClientMessage longer;
  longer.mutable_set_trimmable()->add_devices()->set_device(
      std::string(8'000, 'x'));
  const absl::Time begin = absl::Now();
  for (int sent = 0; sent < 350 && absl::Now() - begin < absl::Seconds(30);) {
    if (stream.Send(longer)) {
      ++sent;
    } else {
      absl::SleepFor(absl::Milliseconds(1));  // room may come: a pace, no wait
    }
  }
  bool asked = false;
  while (!asked && absl::Now() - begin < absl::Seconds(60)) {
    asked = stream.Send(QuotaMessage(2));
    if (!asked) absl::SleepFor(absl::Milliseconds(1));
  }
  ASSERT_TRUE(asked && stream.ReceiveAnswer(2).has_value());
  EXPECT_GT(absl::Now() - begin, absl::Milliseconds(400));
}

TEST_F(PacketStreamsTest, StreamsThatComeAndGoLeaveNothing) {
  const Footprint before = Settle();
  {
    const RawSession session = RawSession::Open(TenantDir("a")).value();
    for (int i = 0; i < 300; ++i) {
      RawPacketStream stream = Open(session);
      if (i % 3 == 0) {
        ASSERT_TRUE(Answers(&stream, static_cast<uint64_t>(i) + 1));
      }
    }
    RawPacketStream stream = Open(session);
    EXPECT_TRUE(Answers(&stream, 1000));
  }
  ExpectBackTo(before);
}

// A message that the broker sends anew on each stream meets one that is closed
// already.
TEST_F(PacketStreamsTest, StreamsThatCloseBeforeTheyBeginLeaveNothing) {
  const Footprint before = Settle();
  {
    RawSession session = RawSession::Open(TenantDir("a")).value();
    RawPacketStream stream = Open(session);
    ASSERT_TRUE(stream.Send(AcquireMessage(1, 32 * kMiB)));
    ASSERT_TRUE(session.TakeSlabs().ok());
    const auto grant = stream.ReceiveAnswer(1);
    ASSERT_TRUE(grant.has_value() && grant->has_grant());
    v1::ClientMessage mapped;
    mapped.mutable_mapped()->set_lease_id(grant->grant().lease_id());
    v1::ClientMessage trimmable;
    trimmable.mutable_set_trimmable()->add_devices()->set_bytes(32 * kMiB);
    ASSERT_TRUE(stream.Send(mapped) && stream.Send(trimmable));
    const auto asks = StartGmb("reclaim", {"reclaim", "a", "--bytes", "32MiB",
                                           "--to", "trim", "--wait", "60s"});
    std::optional<v1::BrokerMessage> said;
    do {
      said = stream.Receive();
    } while (said.has_value() && !said->has_trim());
    ASSERT_TRUE(said.has_value());
    for (int i = 0; i < 500; ++i) {
      ipc::SeqpacketSocket socket =
          ipc::SeqpacketSocket::Connect(TenantDir("a") + "/handle.sock",
                                        absl::Seconds(60))
              .value();
      ASSERT_TRUE(socket.Receive(absl::Seconds(60)).ok());  // the Challenge
      v1::ClientFrame frame;
      frame.mutable_open_stream()->set_token(session.welcome.token());
      ASSERT_TRUE(socket
                      .TrySend(frame.SerializeAsString(), {},
                               /*with_credentials=*/true)
                      .ok());
    }
    asks->Signal(SIGKILL);
    EXPECT_EQ(asks->AwaitExit(), 128 + SIGKILL);
  }
  ExpectBackTo(before);
}

TEST_F(PacketStreamsTest, TheEndOfTheSessionEndsItsStream) {
  auto session =
      std::make_unique<RawSession>(RawSession::Open(TenantDir("a")).value());
  RawPacketStream stream = Open(*session);
  ASSERT_TRUE(Answers(&stream, 1));
  session.reset();
  const absl::Status end = stream.Finish();
  EXPECT_TRUE(absl::IsUnavailable(end)) << end;
  EXPECT_FALSE(end.message().empty());
}

}  // namespace
}  // namespace gmb::component
