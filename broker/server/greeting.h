#ifndef GMB_BROKER_SERVER_GREETING_H_
#define GMB_BROKER_SERVER_GREETING_H_

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "ipc/seqpacket.h"

namespace gmb::broker {

// A peer's words about itself, once it has proved to be the process that the
// kernel names.
struct ProvedHello {
  std::string program;
  std::string tenant_token;
};

// A peer that has a session asks for its stream.
struct AskedStream {
  std::string token;  // of the session, not judged yet
};

// One greeting: a nonce goes out, and one Hello has to come back with it, from
// the very process that connected. SO_PEERCRED names who connected; the
// credentials of the packet name who answers now, and the kernel vouches for
// both. With them equal, and the process still alive afterwards, neither an
// inherited socket nor a recycled pid can pass for somebody else. A peer that
// has greeted elsewhere proves itself by its session's token in place of the
// nonce.
//
// A value without sockets or clocks; the handle server feeds it.
class Greeting {
 public:
  static constexpr size_t kNonceBytes = 16;
  static constexpr size_t kMaxProgramBytes = 64;
  static constexpr size_t kMaxTenantTokenBytes = 256;
  // Of a first packet, which is a stranger's: a Hello has some 400 at the most.
  static constexpr size_t kMaxFirstBytes = 1024;

  // `peer`: the SO_PEERCRED of the socket.
  static absl::StatusOr<Greeting> Start(const ipc::PeerCredentials& peer);
  // With a nonce of the caller's choice.
  Greeting(std::string nonce, const ipc::PeerCredentials& peer);

  [[nodiscard]] const std::string& nonce() const { return nonce_; }
  [[nodiscard]] const ipc::PeerCredentials& peer() const { return peer_; }

  // Judges the peer's first packet. An error is what to refuse it with.
  [[nodiscard]] absl::StatusOr<std::variant<ProvedHello, AskedStream>> OnPacket(
      const ipc::Packet& packet) const;

 private:
  [[nodiscard]] bool IsOfPeer(const ipc::Packet& packet) const;

  std::string nonce_;
  ipc::PeerCredentials peer_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_GREETING_H_
