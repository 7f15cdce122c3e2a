// Fuzzes what a peer may send on the handle socket, before and after its Hello.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "broker/server/greeting.h"
#include "broker/server/handle_frames.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gmb::broker::Greeting;
  constexpr gmb::ipc::PeerCredentials kPeer{.pid = 1, .uid = 2, .gid = 3};
  const std::string nonce(Greeting::kNonceBytes, 'n');
  gmb::ipc::Packet packet;
  packet.bytes.assign(reinterpret_cast<const char*>(data), size);
  packet.credentials = kPeer;
  const auto hello = Greeting(nonce, kPeer).OnPacket(packet);
  if (hello.ok() && (hello->program.size() > Greeting::kMaxProgramBytes ||
                     packet.bytes.find(nonce) == std::string::npos)) {
    std::abort();
  }
  if (gmb::broker::ParseSlabsAck(packet).ok() && hello.ok())
    std::abort();  // never both
  packet.credentials->pid = 4;
  if (Greeting(nonce, kPeer).OnPacket(packet).ok()) std::abort();
  return 0;
}
