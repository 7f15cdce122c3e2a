// Fuzzes what a peer may send on the handle socket, before and after its Hello.
#include <string>
#include <variant>

#include "broker/server/greeting.h"
#include "broker/server/handle_frames.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace gmb::fuzz {

void FuzzGreeting(Bytes bytes) {
  using broker::Greeting;
  constexpr ipc::PeerCredentials kPeer{.pid = 1, .uid = 2, .gid = 3};
  const std::string nonce(Greeting::kNonceBytes, 'n');
  ipc::Packet packet;
  packet.bytes = Input(bytes).Rest();
  packet.credentials = kPeer;
  const auto first = Greeting(nonce, kPeer).OnPacket(packet);
  if (first.ok() && std::holds_alternative<broker::ProvedHello>(*first)) {
    const auto* hello = std::get_if<broker::ProvedHello>(&*first);
    Require(hello->program.size() <= Greeting::kMaxProgramBytes &&
                hello->tenant_token.size() <= Greeting::kMaxTenantTokenBytes,
            "a greeting is bounded");
    Require(packet.bytes.find(nonce) != std::string::npos,
            "a greeting repeats the nonce");
  }
  if (first.ok()) {
    Require(!broker::ParseSlabsAck(packet).ok() &&
                !broker::ParseMessage(packet).ok(),
            "a frame is of one kind");
  }
  if (broker::ParseMessage(packet).ok()) {
    Require(packet.bytes.size() <= broker::kMaxMessageBytes,
            "a message is bounded");
  }
  packet.credentials->pid = 4;
  Require(!Greeting(nonce, kPeer).OnPacket(packet).ok(),
          "only the process that connected may greet");
}

}  // namespace gmb::fuzz
