// How the fake broker takes memory away and brings it back.
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "proto/error_status.h"
#include "tests/client/fake_broker.h"

namespace gmb::test {
namespace {

// The move that a message answers; 0: none.
uint64_t MoveOf(const v1::ClientMessage& message) {
  return message.has_unmapped() ? message.unmapped().move()
                                : message.mapped().move();
}

}  // namespace

ipc::GateCells& FakeBroker::gate() {
  base::MutexLock lock(&mu_);
  if (current_ == nullptr || !current_->gate.has_value())
    throw std::runtime_error("no session with a gate");
  return current_->gate->cells();
}

void FakeBroker::Evict(uint64_t lease_id, uint64_t move) {
  v1::BrokerMessage message;
  message.mutable_evict()->set_lease_id(lease_id);
  message.mutable_evict()->set_move(move);
  Say(message);
}

void FakeBroker::FillSlab(const base::UniqueFd& fd, uint64_t bytes, char fill) {
  const std::string contents(bytes, fill);
  if (pwrite(fd.get(), contents.data(), bytes, 0) !=
      static_cast<ssize_t>(bytes)) {
    throw std::runtime_error("cannot write to a slab");
  }
}

void FakeBroker::DropSlabs(uint64_t lease_id) {
  const std::shared_ptr<Peer> peer = current();
  if (peer == nullptr) return;
  base::MutexLock lock(&mu_);
  for (const device::SlabKey key : peer->leases[lease_id])
    allocator_->Destroy(key).IgnoreError();
  peer->leases[lease_id].clear();
}

v1::BrokerMessage FakeBroker::SendSlabs(uint64_t lease_id, uint64_t move,
                                        uint64_t bytes, char fill) {
  std::vector<std::pair<uint64_t, base::UniqueFd>> slabs =
      MakeSlabs(lease_id, bytes);
  for (const auto& [slab_bytes, fd] : slabs) FillSlab(fd, slab_bytes, fill);
  v1::BrokerMessage message;
  v1::Map& map = *message.mutable_map();
  map.set_lease_id(lease_id);
  map.set_move(move);
  map.set_slabs(static_cast<uint32_t>(slabs.size()));
  map.set_bytes(bytes);
  v1::Slabs frame;
  frame.set_lease_id(lease_id);
  frame.set_move(move);
  SendInFrames(frame, std::move(slabs));
  return message;
}

void FakeBroker::Refuse(const v1::ClientMessage& request,
                        const absl::Status& why) {
  v1::BrokerMessage message;
  message.set_request_id(request.request_id());
  *message.mutable_error() = proto::ToWireError(why);
  Say(message);
}

std::vector<v1::ClientMessage> FakeBroker::Moved(uint64_t move) const {
  std::vector<v1::ClientMessage> moved;
  for (const v1::ClientMessage& message : messages()) {
    if (MoveOf(message) == move) moved.push_back(message);
  }
  return moved;
}

}  // namespace gmb::test
