#ifndef GMB_BROKER_SERVER_HANDLE_FRAMES_H_
#define GMB_BROKER_SERVER_HANDLE_FRAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/opened_session.h"
#include "broker/machine/peer.h"
#include "ipc/seqpacket.h"

// The frames of the handle socket (proto/gmb/v1/handle.proto) as bytes. A
// peer's frames are judged here; nothing here touches a socket.
namespace gmb::broker {

inline constexpr uint32_t kHandleProtocolVersion = 1;
// Of the gate page whose fd goes with the Welcome (docs/gate.md).
inline constexpr uint32_t kGateLayout = 1;

[[nodiscard]] std::string ChallengeFrame(std::string_view nonce);
[[nodiscard]] std::string WelcomeFrame(const OpenedSession& session);
[[nodiscard]] std::string RefusedFrame(const absl::Status& why);

// A peer with a session may say one thing alone: the frame id of a SlabsAck.
// Anything else is an error that ends the session.
absl::StatusOr<uint64_t> ParseSlabsAck(const ipc::Packet& packet);

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_HANDLE_FRAMES_H_
