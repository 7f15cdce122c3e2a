// Memory of the broker in an attacker's hands.
#include "tests/attack/own_lease.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/time/time.h"
#include "gmb/v1/handle.pb.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kLeasePatience = absl::Seconds(10);
constexpr char kOwnByte = 'r';

}  // namespace

Slab::Slab(base::UniqueFd memory, uint64_t size)
    : fd(std::move(memory)),
      bytes(size),
      at(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(),
                0)) {}

Slab::Slab(Slab&& other) noexcept
    : fd(std::move(other.fd)),
      bytes(other.bytes),
      at(std::exchange(other.at, MAP_FAILED)) {}

Slab::~Slab() { Unmap(); }

void Slab::Unmap() {
  if (at != MAP_FAILED) ::munmap(at, bytes);
  at = MAP_FAILED;
}

bool HasBytesOfOthers(const Slab& slab) {
  const auto* const bytes = static_cast<const char*>(slab.at);
  return std::any_of(bytes, bytes + slab.bytes,
                     [](char byte) { return byte != 0 && byte != kOwnByte; });
}

void FillWithOwn(const Slab& slab) {
  std::memset(slab.at, kOwnByte, slab.bytes);
}

v1::ClientMessage AcquireOf(uint64_t bytes) {
  v1::ClientMessage message;
  message.mutable_acquire()->set_bytes(bytes);
  message.mutable_acquire()->mutable_wait()->set_seconds(10);
  return message;
}

v1::ClientMessage ReleaseOf(uint64_t lease) {
  v1::ClientMessage message;
  message.mutable_release()->set_lease_id(lease);
  return message;
}

v1::ClientMessage MappedOf(uint64_t lease, uint64_t move) {
  v1::ClientMessage message;
  message.mutable_mapped()->set_lease_id(lease);
  message.mutable_mapped()->set_move(move);
  return message;
}

absl::StatusOr<std::vector<Slab>> TakeSlabs(ipc::SeqpacketSocket& socket,
                                            uint32_t count,
                                            std::vector<std::string>* acks) {
  std::vector<Slab> slabs;
  while (slabs.size() < count) {
    absl::StatusOr<ipc::Packet> packet = socket.Receive(kLeasePatience);
    if (!packet.ok()) return packet.status();
    v1::BrokerFrame frame;
    if (!frame.ParseFromString(packet->bytes) || !frame.has_slabs())
      return absl::InternalError("not a Slabs frame");
    for (size_t i = 0; i < packet->fds.size(); ++i) {
      slabs.emplace_back(std::move(packet->fds[i]),
                         frame.slabs().slab_bytes(static_cast<int>(i)));
    }
    v1::ClientFrame ack;
    ack.mutable_slabs_ack()->set_frame_id(frame.slabs().frame_id());
    const std::string bytes = ack.SerializeAsString();
    if (acks != nullptr) acks->push_back(bytes);
    const absl::Status sent =
        socket.Send(bytes, {},
                    /*with_credentials=*/false, kLeasePatience);
    if (!sent.ok()) return sent;
  }
  return slabs;
}

}  // namespace gmb::attack
