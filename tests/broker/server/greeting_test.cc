#include "broker/server/greeting.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "broker/server/handle_frames.h"
#include "gmb/v1/handle.pb.h"
#include "google/protobuf/stubs/logging.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr ipc::PeerCredentials kPeer{.pid = 4711, .uid = 1000, .gid = 100};
const char kNonce[] = "0123456789abcdef";

v1::ClientFrame HelloFrame() {
  v1::ClientFrame frame;
  frame.mutable_hello()->set_protocol_version(kHandleProtocolVersion);
  frame.mutable_hello()->set_nonce(kNonce);
  frame.mutable_hello()->set_program("tester");
  frame.mutable_hello()->set_tenant_token("secret");
  return frame;
}

ipc::Packet PacketOf(const v1::ClientFrame& frame) {
  ipc::Packet packet;
  packet.bytes = frame.SerializeAsString();
  packet.credentials = kPeer;
  return packet;
}

absl::Status Judge(const ipc::Packet& packet) {
  return Greeting(kNonce, kPeer).OnPacket(packet).status();
}

absl::Status Judge(const v1::ClientFrame& frame) {
  return Judge(PacketOf(frame));
}

// The field that a refusal names; "-" when it is no BAD_REQUEST.
std::string BadField(const absl::Status& status) {
  const std::optional<v1::ErrorDetail> detail = proto::GetErrorDetail(status);
  if (!detail.has_value() || detail->reason() != v1::BAD_REQUEST) return "-";
  return detail->field();
}

TEST(GreetingTest, AcceptsAHelloThatAnswersTheChallenge) {
  const auto first = Greeting(kNonce, kPeer).OnPacket(PacketOf(HelloFrame()));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto* hello = std::get_if<ProvedHello>(&*first);
  ASSERT_NE(hello, nullptr);
  EXPECT_EQ(hello->program, "tester");
  EXPECT_EQ(hello->tenant_token, "secret");
}

// It proves itself by the token, which is judged elsewhere; the Challenge may be
// unread.
TEST(GreetingTest, AcceptsThatAStreamIsAskedForByTheProcessThatConnected) {
  v1::ClientFrame frame;
  frame.mutable_open_stream()->set_token("a token");
  const auto first = Greeting(kNonce, kPeer).OnPacket(PacketOf(frame));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto* asked = std::get_if<AskedStream>(&*first);
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ(asked->token, "a token");

  ipc::Packet packet = PacketOf(frame);
  packet.credentials->pid = kPeer.pid + 1;
  EXPECT_FALSE(Judge(packet).ok());
  packet.credentials.reset();
  EXPECT_FALSE(Judge(packet).ok());
}

TEST(GreetingTest, EveryChallengeHasANonceOfItsOwn) {
  const absl::StatusOr<Greeting> one = Greeting::Start(kPeer);
  const absl::StatusOr<Greeting> other = Greeting::Start(kPeer);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->nonce().size(), Greeting::kNonceBytes);
  EXPECT_NE(one->nonce(), other->nonce());
  v1::BrokerFrame frame;
  ASSERT_TRUE(frame.ParseFromString(
      ChallengeFrame(one->nonce(), /*takes_streams=*/true)));
  EXPECT_TRUE(frame.challenge().takes_streams());
  EXPECT_EQ(frame.challenge().nonce(), one->nonce());
  EXPECT_EQ(frame.challenge().protocol_version(), kHandleProtocolVersion);
}

TEST(GreetingTest, RefusesAnotherSocketsNonce) {
  for (const std::string_view nonce :
       {"", "0123456789abcdeF", "0123456789abcde"}) {
    v1::ClientFrame frame = HelloFrame();
    frame.mutable_hello()->set_nonce(std::string(nonce));
    EXPECT_EQ(BadField(Judge(frame)), "nonce");
  }
}

TEST(GreetingTest, RefusesAHelloOfAnotherProcessOrUser) {
  ipc::Packet packet = PacketOf(HelloFrame());
  packet.credentials->pid = kPeer.pid + 1;
  EXPECT_FALSE(Judge(packet).ok());
  packet.credentials = kPeer;
  packet.credentials->uid = kPeer.uid + 1;
  EXPECT_FALSE(Judge(packet).ok());
  packet.credentials.reset();
  EXPECT_FALSE(Judge(packet).ok());
}

TEST(GreetingTest, AcceptsAPeerWhosePidIsNotVisible) {
  ipc::PeerCredentials hidden = kPeer;
  hidden.pid = 0;
  ipc::Packet packet = PacketOf(HelloFrame());
  EXPECT_FALSE(Greeting(kNonce, hidden).OnPacket(packet).ok());
  packet.credentials = hidden;
  EXPECT_TRUE(Greeting(kNonce, hidden).OnPacket(packet).ok());
}

TEST(GreetingTest, RefusesAnotherProtocolVersion) {
  v1::ClientFrame frame = HelloFrame();
  frame.mutable_hello()->set_protocol_version(2);
  EXPECT_EQ(BadField(Judge(frame)), "protocol_version");
}

TEST(GreetingTest, RefusesAProgramNameThatCanNotBeShown) {
  for (const std::string& name :
       {std::string(65, 'x'), std::string("a\nb"), std::string("\x7f"),
        std::string("a\0b", 3), std::string("\xc3\xa4")}) {
    v1::ClientFrame frame = HelloFrame();
    frame.mutable_hello()->set_program(name);
    EXPECT_EQ(BadField(Judge(frame)), "program");
  }
  v1::ClientFrame frame = HelloFrame();
  frame.mutable_hello()->set_program(std::string(64, '~'));
  EXPECT_TRUE(Judge(frame).ok());
  frame.mutable_hello()->clear_program();
  EXPECT_TRUE(Judge(frame).ok());
}

TEST(GreetingTest, RefusesATokenThatIsTooLong) {
  v1::ClientFrame frame = HelloFrame();
  frame.mutable_hello()->set_tenant_token(std::string(257, 't'));
  EXPECT_EQ(BadField(Judge(frame)), "tenant_token");
}

TEST(GreetingTest, RefusesAnythingElseThanAHello) {
  v1::ClientFrame ack;
  ack.mutable_slabs_ack()->set_frame_id(1);
  EXPECT_FALSE(Judge(ack).ok());
  EXPECT_FALSE(Judge(v1::ClientFrame()).ok());
  ipc::Packet packet = PacketOf(HelloFrame());
  packet.bytes = "garbage";
  EXPECT_FALSE(Judge(packet).ok());
  packet = PacketOf(HelloFrame());
  packet.fds.emplace_back(::dup(STDERR_FILENO));
  EXPECT_FALSE(Judge(packet).ok());
}

// An OpenStream with something in front of it that takes long to read: a peer
// may be anybody.
TEST(GreetingTest, RefusesAFirstFrameOfMoreThanOneKibibyteUnread) {
  v1::ClientFrame heavy;
  auto* trimmable = heavy.mutable_message()->mutable_set_trimmable();
  for (int i = 0; i < 600; ++i) trimmable->add_devices();
  v1::ClientFrame open;
  open.mutable_open_stream()->set_token("a token");
  ipc::Packet packet = PacketOf(open);
  ASSERT_TRUE(Judge(packet).ok());
  packet.bytes.insert(0, heavy.SerializeAsString());
  ASSERT_GT(packet.bytes.size(), Greeting::kMaxFirstBytes);
  const absl::Status refused = Judge(packet);
  EXPECT_EQ(BadField(refused), "");
  EXPECT_NE(refused.message().find("at most 1024 bytes; this one has"),
            std::string::npos)
      << refused;
}

TEST(GreetingTest, TheLongestHelloIsFarBelowTheBound) {
  v1::ClientFrame frame = HelloFrame();
  frame.mutable_hello()->set_program(std::string(64, '~'));
  frame.mutable_hello()->set_tenant_token(std::string(256, 't'));
  const ipc::Packet packet = PacketOf(frame);
  EXPECT_TRUE(Judge(packet).ok());
  EXPECT_LT(packet.bytes.size(), Greeting::kMaxFirstBytes / 2);
}

TEST(SlabsAckTest, IsRefusedUnreadBeyondSixtyFourBytes) {
  v1::ClientFrame heavy;
  auto* trimmable = heavy.mutable_message()->mutable_set_trimmable();
  for (int i = 0; i < 30; ++i) trimmable->add_devices();
  v1::ClientFrame ack;
  ack.mutable_slabs_ack()->set_frame_id(std::numeric_limits<uint64_t>::max());
  ipc::Packet packet = PacketOf(ack);
  EXPECT_LE(packet.bytes.size(), 13U);
  EXPECT_TRUE(ParseSlabsAck(packet).ok());
  // The last kind that a frame names is the one that counts.
  packet.bytes.insert(0, heavy.SerializeAsString());
  ASSERT_GT(packet.bytes.size(), kMaxAckBytes);
  v1::ClientFrame both;
  ASSERT_TRUE(both.ParseFromString(packet.bytes) && both.has_slabs_ack());
  EXPECT_FALSE(ParseSlabsAck(packet).ok());
}

TEST(SlabsAckTest, IsTheOnlyThingThatASessionMaySay) {
  v1::ClientFrame ack;
  ack.mutable_slabs_ack()->set_frame_id(7);
  const absl::StatusOr<uint64_t> frame_id = ParseSlabsAck(PacketOf(ack));
  ASSERT_TRUE(frame_id.ok());
  EXPECT_EQ(*frame_id, 7U);
  EXPECT_FALSE(ParseSlabsAck(PacketOf(HelloFrame())).ok());
  EXPECT_FALSE(ParseSlabsAck(PacketOf(v1::ClientFrame())).ok());
  ipc::Packet with_fd = PacketOf(ack);
  with_fd.fds.emplace_back(::dup(STDERR_FILENO));
  EXPECT_FALSE(ParseSlabsAck(with_fd).ok());
}

TEST(WelcomeFrameTest, SaysWhatTheSessionIs) {
  OpenedSession opened;
  opened.id = 3;
  opened.token = "0123456789abcdef";
  opened.tenant = "a";
  opened.devices.push_back(
      {device::DeviceKind::kHost, "host-0", "host memory", 1 << 30, 1 << 21});
  opened.warnings = {"little headroom"};
  v1::BrokerFrame frame;
  ASSERT_TRUE(frame.ParseFromString(WelcomeFrame(opened)));
  EXPECT_EQ(frame.welcome().session_id(), 3U);
  EXPECT_EQ(frame.welcome().token(), opened.token);
  EXPECT_EQ(frame.welcome().tenant(), "a");
  EXPECT_EQ(frame.welcome().devices(0).uuid(), "host-0");
  EXPECT_EQ(frame.welcome().warnings(0), "little headroom");
  EXPECT_FALSE(frame.welcome().broker_version().empty());
}

// Valid frames with bytes changed, cut and added. An accepted one must be a
// Hello with this nonce; nothing may crash.
TEST(GreetingTest, SurvivesFramesChangedAtRandom) {
  google::protobuf::SetLogHandler(nullptr);  // it complains of bad UTF-8
  std::mt19937 random(7);
  const std::string valid = HelloFrame().SerializeAsString();
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    ipc::Packet packet = PacketOf({});
    packet.bytes = valid;
    for (uint32_t changes = random() % 4; changes > 0; --changes) {
      const size_t at = random() % (packet.bytes.size() + 1);
      switch (random() % 3) {
        case 0:
          if (at < packet.bytes.size())
            packet.bytes[at] = static_cast<char>(random());
          break;
        case 1:
          packet.bytes.resize(at);
          break;
        default:
          packet.bytes.insert(at, 1 + random() % 3,
                              static_cast<char>(random()));
      }
    }
    const auto judged = Greeting(kNonce, kPeer).OnPacket(packet);
    // Of the other kind the token, which is judged elsewhere, is all.
    if (judged.ok() && std::holds_alternative<ProvedHello>(*judged)) {
      ++accepted;
      EXPECT_NE(packet.bytes.find(kNonce), std::string::npos);
    }
    static_cast<void>(ParseSlabsAck(packet).ok());
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace gmb::broker
