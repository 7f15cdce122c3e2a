#include "tests/component/raw_session.h"

#include <utility>

#include "absl/time/time.h"
#include "client/session/greeting.h"
#include "gmb/v1/session.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "proto/error_status.h"

namespace gmb::component {
namespace {

constexpr absl::Duration kRawPatience = absl::Seconds(60);

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& socket_dir) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket_dir + "/gmb.sock",
                                   grpc::InsecureChannelCredentials(),
                                   arguments);
}

struct RawStream::Call {
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  std::unique_ptr<v1::SessionService::Stub> stub;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::ClientMessage, v1::BrokerMessage>>
      stream;
};

RawStream::RawStream(const std::string& socket_dir,
                     const std::optional<std::string>& token)
    : call_(std::make_unique<Call>()) {
  call_->channel = OpenChannel(socket_dir);
  call_->stub = v1::SessionService::NewStub(call_->channel);
  if (token.has_value()) call_->context.AddMetadata(kTokenKey, *token);
  call_->stream = call_->stub->Session(&call_->context);
}

RawStream::~RawStream() {
  if (finished_) return;
  call_->context.TryCancel();
  (void)Finish();
}

bool RawStream::Send(const v1::ClientMessage& message) {
  return call_->stream->Write(message);
}

std::optional<v1::BrokerMessage> RawStream::Receive() {
  v1::BrokerMessage message;
  if (!call_->stream->Read(&message)) return std::nullopt;
  return message;
}

std::optional<v1::BrokerMessage> RawStream::ReceiveAnswer(uint64_t request_id) {
  while (std::optional<v1::BrokerMessage> message = Receive()) {
    if (message->request_id() == request_id && !message->has_waiting())
      return message;
  }
  return std::nullopt;
}

absl::Status RawStream::Finish() {
  finished_ = true;
  v1::BrokerMessage dropped;
  while (call_->stream->Read(&dropped)) {
  }
  return proto::FromGrpcStatus(call_->stream->Finish());
}

RawPacketStream::RawPacketStream(const std::string& socket_dir,
                                 const std::string& token)
    : socket_(ipc::SeqpacketSocket::Connect(socket_dir + "/handle.sock",
                                            kRawPatience)
                  .value()) {
  v1::ClientFrame frame;
  frame.mutable_open_stream()->set_token(token);
  (void)socket_.TrySend(frame.SerializeAsString(), {},
                        /*with_credentials=*/true);
}

bool RawPacketStream::Send(const v1::ClientMessage& message) {
  v1::ClientFrame frame;
  *frame.mutable_message() = message;
  return SendBytes(frame.SerializeAsString());
}

bool RawPacketStream::SendBytes(const std::string& bytes,
                                const std::vector<int>& fds) {
  const absl::StatusOr<bool> sent = socket_.TrySend(bytes, fds);
  return sent.ok() && *sent;
}

std::optional<v1::BrokerMessage> RawPacketStream::Receive() {
  while (!end_.has_value()) {
    const absl::StatusOr<ipc::Packet> packet = socket_.Receive(kRawPatience);
    v1::BrokerFrame frame;
    if (!packet.ok()) {
      end_ = packet.status();
    } else if (!frame.ParseFromString(packet->bytes) || frame.has_refused()) {
      end_ = absl::InternalError("no frame of a stream");
    } else if (frame.has_stream_ended()) {
      end_ = proto::FromWireError(frame.stream_ended());
    } else if (frame.has_message()) {
      return frame.message();
    }
  }
  return std::nullopt;
}

std::optional<v1::BrokerMessage> RawPacketStream::ReceiveAnswer(
    uint64_t request_id) {
  while (std::optional<v1::BrokerMessage> message = Receive()) {
    if (message->request_id() == request_id && !message->has_waiting())
      return message;
  }
  return std::nullopt;
}

absl::Status RawPacketStream::Finish() {
  while (Receive().has_value()) {
  }
  return *end_;
}

absl::StatusOr<RawSession> RawSession::Open(const std::string& socket_dir,
                                            const std::string& tenant_token) {
  absl::StatusOr<internal::Greeting> greeting = internal::Greet(
      socket_dir + "/handle.sock", "raw", tenant_token, kRawPatience);
  if (!greeting.ok()) return greeting.status();
  return RawSession{std::move(greeting->socket), std::move(greeting->welcome)};
}

std::unique_ptr<RawStream> RawSession::OpenStream(
    const std::string& socket_dir) const {
  return std::make_unique<RawStream>(socket_dir, welcome.token());
}

absl::StatusOr<v1::Slabs> RawSession::TakeSlabs(
    std::vector<base::UniqueFd>* fds) {
  absl::StatusOr<ipc::Packet> packet = socket.Receive(kRawPatience);
  if (!packet.ok()) return packet.status();
  v1::BrokerFrame frame;
  if (!frame.ParseFromString(packet->bytes) || !frame.has_slabs())
    return absl::InternalError("not a Slabs frame");
  const absl::Status acknowledged =
      socket.Send(AckFrame(frame.slabs().frame_id()).SerializeAsString(), {},
                  /*with_credentials=*/false, kRawPatience);
  if (!acknowledged.ok()) return acknowledged;
  if (fds != nullptr) *fds = std::move(packet->fds);
  return frame.slabs();
}

absl::Status RawSession::AwaitHangUp() {
  while (true) {
    const absl::StatusOr<ipc::Packet> packet = socket.Receive(kRawPatience);
    if (absl::IsUnavailable(packet.status())) return absl::OkStatus();
    if (!packet.ok()) return packet.status();
  }
}

v1::ClientMessage AcquireMessage(uint64_t id, uint64_t bytes) {
  v1::ClientMessage message;
  message.set_request_id(id);
  message.mutable_acquire()->set_bytes(bytes);
  return message;
}

v1::ClientMessage ReleaseMessage(uint64_t id, uint64_t lease) {
  v1::ClientMessage message;
  message.set_request_id(id);
  message.mutable_release()->set_lease_id(lease);
  return message;
}

v1::ClientFrame AckFrame(uint64_t frame_id) {
  v1::ClientFrame frame;
  frame.mutable_slabs_ack()->set_frame_id(frame_id);
  return frame;
}

}  // namespace gmb::component
