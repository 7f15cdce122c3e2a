#ifndef GMB_BROKER_SERVER_HANDLE_FRAMES_H_
#define GMB_BROKER_SERVER_HANDLE_FRAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/opened_session.h"
#include "broker/machine/peer.h"
#include "gmb/v1/session.pb.h"
#include "ipc/seqpacket.h"

// The frames of the handle socket (proto/gmb/v1/handle.proto) as bytes. A
// peer's frames are judged here; nothing here touches a socket.
namespace gmb::broker {

inline constexpr uint32_t kHandleProtocolVersion = 1;
// Of the gate page whose fd goes with the Welcome (docs/gate.md).
inline constexpr uint32_t kGateLayout = 1;

// `takes_streams`: a peer with a session may connect again for its stream.
[[nodiscard]] std::string ChallengeFrame(std::string_view nonce,
                                         bool takes_streams);
[[nodiscard]] std::string WelcomeFrame(const OpenedSession& session);
[[nodiscard]] std::string RefusedFrame(const absl::Status& why);
[[nodiscard]] std::string MessageFrame(v1::BrokerMessage message);
[[nodiscard]] std::string StreamEndedFrame(const absl::Status& why);

// A peer with a session may say one thing alone: the frame id of a SlabsAck.
// Anything else is an error that ends the session.
inline constexpr size_t kMaxAckBytes = 64;  // it needs 13 at the most
absl::StatusOr<uint64_t> ParseSlabsAck(const ipc::Packet& packet);

// A client's message has some hundred bytes at the most.
inline constexpr size_t kMaxMessageBytes = size_t{8} * 1024;
// On a stream a peer sends messages alone. Any other packet is an error that
// ends the stream.
absl::StatusOr<v1::ClientMessage> ParseMessage(const ipc::Packet& packet);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_HANDLE_FRAMES_H_
