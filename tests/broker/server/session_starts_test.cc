// A session begins, over a real socket, with a core that is played.
#include "broker/server/session_starts.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "gmb/v1/handle.pb.h"
#include "ipc/gate_page.h"
#include "proto/error_status.h"
#include "tests/broker/server/connected_pair.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SessionStartsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSession = 7;

  void SetUp() override {
    pair_.connection->tenant_directory = "t";
    ASSERT_TRUE(pair_.connection->BeginGreeting().ok());
  }
  ~SessionStartsTest() override {
    if (connection().outbox != nullptr)
      connection().outbox->Close(absl::UnavailableError("end"));
  }

  HandleConnection& connection() const { return *pair_.connection; }
  absl::Status Start() {
    return starts_.Start(1, &connection(), {"tester", "secret"});
  }
  // A frame, or its absence, that the peer has not read.
  bool PeerHasNews() const {
    char byte = 0;
    return pair_.peer.has_value() &&
           ::recv(pair_.peer->fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  }
  void Note(const std::string& what) {
    calls_made_.push_back(what + (PeerHasNews() ? ", peer knows" : ""));
  }
  SessionCalls Calls() {
    SessionCalls calls;
    calls.open = [this](const PeerIdentity& peer) { return Open(peer); };
    calls.keep = [this](uint64_t session, int socket, const auto& /*pidfd*/,
                        int gate_page) {
      EXPECT_EQ(session, kSession);
      EXPECT_EQ(socket, connection().socket->fd());
      EXPECT_EQ(gate_page >= 0, gives_gate_page_);
      Note("keep");
    };
    calls.welcomed = [this](uint64_t session) {
      EXPECT_EQ(session, kSession);
      Note("welcomed");
    };
    return calls;
  }
  absl::StatusOr<OpenedSession> Open(const PeerIdentity& peer) {
    Note("open " + peer.tenant_directory + " " + peer.program + " " +
         peer.tenant_token);
    EXPECT_EQ(peer.origin, connection().origin);
    EXPECT_EQ(peer.pid, ::getpid());
    if (!refusal_.ok()) return refusal_;
    OpenedSession opened;
    opened.id = kSession;
    opened.token = std::string(16, 't');
    opened.tenant = "t";
    opened.outbox = std::make_shared<Outbox>();
    if (gives_gate_page_) opened.gate_page = ipc::CreateGatePage().value();
    return opened;
  }
  // Another connection of the tenant, with an fd that its peer has not read.
  void TakeAllRoom(ConnectedPair* other) {
    other->CountUnread(in_flight_);
    ConnectedPair::SendFd(*other->connection);
    (void)table_.Add(std::move(other->connection));
    ASSERT_FALSE(HasRoom(in_flight_));
  }

  ConnectedPair pair_;
  std::vector<std::string> calls_made_;
  absl::Status refusal_;
  bool gives_gate_page_ = true;
  const SessionCalls calls_ = Calls();
  const ipc::EpollSet epoll_ = ipc::EpollSet::Create().value();
  ConnectionTable table_{&epoll_};
  const std::shared_ptr<FdsInFlight> in_flight_ =
      std::make_shared<FdsInFlight>(8);
  UnreadSockets unread_;
  SweepTime sweep_{std::chrono::hours(1)};
  SessionStarts starts_{
      {.calls = &calls_,
       .in_flight = in_flight_,
       .news = std::make_shared<SenderNews>(ipc::Wakeup::Create().value()),
       .connections = &table_,
       .unread = &unread_,
       .sweep = &sweep_}};
};

TEST_F(SessionStartsTest, ASessionIsKeptBeforeItsPeerKnowsAndToldAfter) {
  ASSERT_TRUE(Start().ok());
  EXPECT_THAT(calls_made_, ElementsAre("open t tester secret", "keep",
                                       "welcomed, peer knows"));
  EXPECT_EQ(connection().session, kSession);
  const absl::StatusOr<ipc::Packet> packet =
      pair_.peer->Receive(absl::Seconds(30));
  ASSERT_TRUE(packet.ok()) << packet.status();
  v1::BrokerFrame frame;
  ASSERT_TRUE(frame.ParseFromString(packet->bytes));
  EXPECT_EQ(frame.welcome().session_id(), kSession);
  EXPECT_EQ(packet->fds.size(), 1U);
}

TEST_F(SessionStartsTest, TheOutboxSendsOnTheConnection) {
  ASSERT_TRUE(Start().ok());
  pair_.Read();
  SlabFrame frame;
  frame.frame_id = 1;
  frame.bytes = "slabs";
  connection().outbox->Push(std::move(frame));
  connection().outbox->Pump();
  const absl::StatusOr<ipc::Packet> packet =
      pair_.peer->Receive(absl::Seconds(30));
  ASSERT_TRUE(packet.ok()) << packet.status();
  EXPECT_EQ(packet->bytes, "slabs");
}

// Somebody has to look when it is read.
TEST_F(SessionStartsTest, AGatesPageIsInFlightUntilItIsRead) {
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(sweep_.next().has_value());
  EXPECT_FALSE(HasRoom(in_flight_));
  pair_.Read();
  EXPECT_TRUE(connection().unread->GiveBackIfRead(connection().socket->fd()));
  EXPECT_TRUE(HasRoom(in_flight_));
}

TEST_F(SessionStartsTest, AnOperatorsSessionIsNotKept) {
  connection().origin = Origin::kAdmin;
  connection().tenant_directory = "";
  gives_gate_page_ = false;
  ASSERT_TRUE(Start().ok());
  EXPECT_THAT(calls_made_, ElementsAre("open  tester secret"));
  EXPECT_TRUE(PeerHasNews());
  EXPECT_EQ(sweep_.next(), std::nullopt);
}

TEST_F(SessionStartsTest, APeerThatTheCoreRefusesHasNoSessionToClose) {
  refusal_ = absl::PermissionDeniedError("no such tenant");
  EXPECT_EQ(Start(), refusal_);
  EXPECT_EQ(connection().outbox, nullptr);
  EXPECT_FALSE(PeerHasNews());
}

TEST_F(SessionStartsTest, WithoutRoomForItsFdThereIsASessionToClose) {
  ConnectedPair other;
  ASSERT_NO_FATAL_FAILURE(TakeAllRoom(&other));
  const absl::Status started = Start();
  EXPECT_EQ(proto::ToWireError(started).detail().reason(),
            v1::TOO_MANY_SESSIONS)
      << started;
  EXPECT_NE(connection().outbox, nullptr);
  EXPECT_FALSE(PeerHasNews());
  EXPECT_THAT(calls_made_, ElementsAre("open t tester secret", "keep"));
}

TEST_F(SessionStartsTest, RoomThatOthersHaveMadeIsFound) {
  ConnectedPair other;
  ASSERT_NO_FATAL_FAILURE(TakeAllRoom(&other));
  other.Read();
  EXPECT_TRUE(Start().ok());
  EXPECT_TRUE(PeerHasNews());
}

TEST_F(SessionStartsTest, APeerThatIsGoneIsAnError) {
  pair_.peer.reset();
  EXPECT_EQ(starts_.Start(1, &connection(), {}).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(sweep_.next().has_value(), true);
}

}  // namespace
}  // namespace gmb::broker
