#include "broker/core/outbox.h"

#include <optional>

#include "gmb/v1/handle.pb.h"
#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

class Peer : public StreamSink, public FrameSender {
 public:
  bool Write(v1::BrokerMessage message) override {
    sent.push_back("message " + std::to_string(message.request_id()));
    return !stream_over;
  }
  void Close(const absl::Status& status) override { closed = status; }
  absl::StatusOr<bool> TrySend(const std::string& frame,
                               absl::Span<const int>) override {
    if (full) return false;
    sent.push_back("frame " + frame);
    return true;
  }
  void Hangup() override { hung_up = true; }

  std::vector<std::string> sent;
  bool full = false;
  bool stream_over = false;
  bool hung_up = false;
  std::optional<absl::Status> closed;
};

v1::BrokerMessage Message(uint64_t id) {
  v1::BrokerMessage message;
  message.set_request_id(id);
  return message;
}

SlabFrame Frame(uint64_t id) { return {id, std::to_string(id), {}}; }

class OutboxTest : public testing::Test {
 protected:
  OutboxTest() {
    outbox.AttachSocket(peer);
    outbox.AttachStream(peer);
  }
  std::shared_ptr<Peer> peer = std::make_shared<Peer>();
  Outbox outbox;
};

TEST_F(OutboxTest, AnnouncementsWaitForTheirHandles) {
  peer->full = true;
  outbox.Push(Frame(1));
  outbox.Push(Message(7));
  outbox.Pump();
  EXPECT_TRUE(peer->sent.empty());
  peer->full = false;
  outbox.OnSocketWritable();
  EXPECT_EQ(peer->sent, (std::vector<std::string>{"frame 1", "message 7"}));
}

TEST_F(OutboxTest, OneFrameIsUnacknowledgedAtATime) {
  outbox.Push(Frame(1));
  outbox.Push(Frame(2));
  outbox.Pump();
  EXPECT_EQ(peer->sent.size(), 1u);
  EXPECT_TRUE(outbox.WaitingForPeerSince().has_value());
  EXPECT_FALSE(outbox.OnAck(2));
  EXPECT_TRUE(outbox.OnAck(1));
  EXPECT_EQ(peer->sent.size(), 2u);
  EXPECT_TRUE(outbox.OnAck(2));
  EXPECT_FALSE(outbox.WaitingForPeerSince().has_value());
}

TEST_F(OutboxTest, OfEachBrokerBeforeOneAcknowledgementIsTaken) {
  EXPECT_FALSE(outbox.TakeOldAck(0));
  const uint64_t ours = uint64_t{2} << 32;
  outbox.IgnoreAcksBelow(ours);
  EXPECT_FALSE(outbox.TakeOldAck(ours));
  EXPECT_TRUE(outbox.TakeOldAck(5));
  EXPECT_TRUE(outbox.TakeOldAck(ours - 1));
  EXPECT_FALSE(outbox.TakeOldAck(ours - 2)) << "a flood";
}

TEST_F(OutboxTest, OneMessageIsInFlightAtATime) {
  outbox.Push(Message(1));
  outbox.Push(Message(2));
  outbox.Pump();
  EXPECT_EQ(peer->sent.size(), 1u);
  outbox.OnWriteDone(peer.get());
  EXPECT_EQ(peer->sent.size(), 2u);
}

TEST_F(OutboxTest, AStreamOfAClientThatAskedAllIsClosedOnceAllIsWritten) {
  outbox.Push(Message(1));
  outbox.Push(Frame(1));
  outbox.Push(Message(2));
  outbox.Pump();
  outbox.CloseOnceWritten(peer.get());
  outbox.OnWriteDone(peer.get());
  EXPECT_FALSE(peer->closed.has_value());  // the slabs were not read yet
  EXPECT_TRUE(outbox.OnAck(1));
  EXPECT_EQ(peer->sent.back(), "message 2");
  EXPECT_FALSE(peer->closed.has_value());
  outbox.OnWriteDone(peer.get());
  EXPECT_EQ(peer->closed, absl::OkStatus());
}

TEST_F(OutboxTest, AStreamThatIsReplacedClosesNoOtherOnceAllIsWritten) {
  outbox.Push(Message(1));
  outbox.Pump();
  outbox.CloseOnceWritten(peer.get());
  auto second = std::make_shared<Peer>();
  outbox.AttachStream(second);
  outbox.CloseOnceWritten(peer.get());  // late: of the stream that is gone
  EXPECT_FALSE(second->closed.has_value());
  outbox.CloseOnceWritten(second.get());  // nothing was asked
  EXPECT_EQ(second->closed, absl::OkStatus());
}

TEST_F(OutboxTest, ANewStreamReplacesTheOldAndStartsEmpty) {
  outbox.Push(Message(1));
  outbox.Push(Message(2));
  outbox.Pump();
  auto second = std::make_shared<Peer>();
  outbox.AttachStream(second);
  EXPECT_TRUE(absl::IsAborted(peer->closed.value()));
  EXPECT_TRUE(second->sent.empty());
  outbox.OnWriteDone(peer.get());  // late: of the stream that is gone
  outbox.Push(Message(3));
  outbox.Pump();
  EXPECT_EQ(second->sent, std::vector<std::string>{"message 3"});
  EXPECT_FALSE(outbox.DetachStream(peer.get()));
  EXPECT_TRUE(outbox.DetachStream(second.get()));
}

TEST_F(OutboxTest, APeerThatDoesNotReadOverflows) {
  peer->full = true;
  outbox.Push(Frame(1));
  for (size_t i = 0; i <= Outbox::kMaxItems; ++i) outbox.Push(Message(i));
  EXPECT_TRUE(outbox.overflowed());
}

TEST_F(OutboxTest, IsCrowdedUntilTheMessagesAreWritten) {
  outbox.Push(Frame(1));
  for (uint64_t id = 1; id <= Outbox::kManyMessages + 2; ++id)
    outbox.Push(Message(id));
  EXPECT_TRUE(outbox.crowded());
  outbox.Pump();  // the first one is being written
  EXPECT_TRUE(outbox.crowded());
  outbox.OnWriteDone(peer.get());
  EXPECT_FALSE(outbox.crowded());
  // A new stream starts empty.
  outbox.Push(Message(1000));
  EXPECT_TRUE(outbox.crowded());
  outbox.AttachStream(std::make_shared<Peer>());
  EXPECT_FALSE(outbox.crowded());
}

TEST_F(OutboxTest, CloseEndsBothSocketsAndSendsNothingMore) {
  outbox.Close(absl::UnavailableError("over"));
  EXPECT_TRUE(peer->hung_up);
  EXPECT_TRUE(absl::IsUnavailable(peer->closed.value()));
  outbox.Push(Message(1));
  outbox.Pump();
  EXPECT_TRUE(peer->sent.empty());
  auto late = std::make_shared<Peer>();
  outbox.AttachStream(late);
  EXPECT_TRUE(absl::IsUnauthenticated(late->closed.value()));
}

}  // namespace
}  // namespace gmb::broker
