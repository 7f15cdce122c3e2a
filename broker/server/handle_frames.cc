// Greeting, slabs and streams: frames of the handle socket, made and judged.
#include "broker/server/handle_frames.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/wire_form.h"
#include "gmb/v1/handle.pb.h"
#include "proto/error_status.h"

namespace gmb::broker {

std::string ChallengeFrame(std::string_view nonce, bool takes_streams) {
  v1::BrokerFrame frame;
  frame.mutable_challenge()->set_nonce(std::string(nonce));
  frame.mutable_challenge()->set_protocol_version(kHandleProtocolVersion);
  frame.mutable_challenge()->set_takes_streams(takes_streams);
  return frame.SerializeAsString();
}

std::string WelcomeFrame(const OpenedSession& session) {
  v1::BrokerFrame frame;
  v1::Welcome* welcome = frame.mutable_welcome();
  welcome->set_session_id(session.id);
  welcome->set_token(session.token);
  welcome->set_tenant(session.tenant);
  welcome->set_broker_version(GMB_VERSION);
  for (const device::DeviceInfo& device : session.devices) {
    *welcome->add_devices() = ToProto(device);
  }
  for (const std::string& warning : session.warnings)
    welcome->add_warnings(warning);
  welcome->set_host_pool_bytes(session.host_pool_bytes);
  welcome->set_gate_layout(session.gate_page.valid() ? kGateLayout : 0);
  return frame.SerializeAsString();
}

std::string RefusedFrame(const absl::Status& why) {
  v1::BrokerFrame frame;
  *frame.mutable_refused() = proto::ToWireError(why);
  return frame.SerializeAsString();
}

std::string MessageFrame(v1::BrokerMessage message) {
  v1::BrokerFrame frame;
  *frame.mutable_message() = std::move(message);
  return frame.SerializeAsString();
}

std::string StreamEndedFrame(const absl::Status& why) {
  v1::BrokerFrame frame;
  *frame.mutable_stream_ended() = proto::ToWireError(why);
  return frame.SerializeAsString();
}

absl::StatusOr<uint64_t> ParseSlabsAck(const ipc::Packet& packet) {
  v1::ClientFrame frame;
  if (!packet.fds.empty())
    return proto::MakeError(v1::BAD_REQUEST, "sent fds; a client sends none");
  if (packet.bytes.size() > kMaxAckBytes ||
      !frame.ParseFromString(packet.bytes) || !frame.has_slabs_ack()) {
    return proto::MakeError(v1::BAD_REQUEST,
                            "sent something else than a SlabsAck");
  }
  return frame.slabs_ack().frame_id();
}

absl::StatusOr<v1::ClientMessage> ParseMessage(const ipc::Packet& packet) {
  v1::ClientFrame frame;
  if (!packet.fds.empty())
    return proto::MakeError(v1::BAD_REQUEST, "sent fds; a client sends none");
  if (packet.bytes.size() > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a message has at most ", kMaxMessageBytes,
                     " bytes; this one has ", packet.bytes.size()));
  }
  if (!frame.ParseFromString(packet.bytes) || !frame.has_message()) {
    return proto::MakeError(v1::BAD_REQUEST,
                            "sent something else than a message on a stream");
  }
  return std::move(*frame.mutable_message());
}

}  // namespace gmb::broker
