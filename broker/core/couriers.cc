// From the machine's effects to the queues of those who carry them out.
#include "broker/core/couriers.h"

#include <map>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "gmb/v1/handle.pb.h"

namespace gmb::broker {

void Errands::Run() {
  for (DeviceWorker* worker : workers) worker->Wake();
  for (device::Copier* copier : copiers) copier->Wake();
  for (const auto& [copier, group] : cancel) copier->Cancel(group);
  for (const auto& outbox : pump) outbox->Pump();
  for (const auto& [outbox, status] : close) outbox->Close(status);
  for (const Reply& reply : replies) reply.call();
  buried.clear();
}

Couriers::Couriers(Keeper* keeper, EventBus* events)
    : keeper_(keeper), events_(events) {}

Couriers::~Couriers() = default;

std::map<quota::PoolId, Couriers::Device> Couriers::TakeDevices() {
  return std::exchange(devices_, {});
}

void Couriers::AddDevice(quota::PoolId pool, Device device) {
  devices_.emplace(pool, std::move(device));
}

void Couriers::AddOutbox(uint64_t session, std::shared_ptr<Outbox> outbox) {
  outboxes_.emplace(session, std::move(outbox));
}

std::shared_ptr<Outbox> Couriers::OutboxOf(uint64_t session) const {
  const auto outbox = outboxes_.find(session);
  return outbox == outboxes_.end() ? nullptr : outbox->second;
}

Errands Couriers::Deliver(std::vector<Effect> effects) {
  Errands errands;
  for (Effect& effect : effects) {
    std::visit([&](auto& one) { Put(std::move(one), &errands); }, effect);
  }
  return errands;
}

void Couriers::Pump(uint64_t session, const std::shared_ptr<Outbox>& outbox,
                    Errands* errands) {
  if (errands->pump.empty() || errands->pump.back() != outbox)
    errands->pump.push_back(outbox);
  if (outbox->overflowed()) errands->overflowed.push_back(session);
}

// A session may have ended in the same turn: nobody is there to be told.
void Couriers::Put(Say say, Errands* errands) {
  const std::shared_ptr<Outbox> outbox = OutboxOf(say.session);
  if (outbox == nullptr) return;
  outbox->Push(std::move(say.message));
  Pump(say.session, outbox, errands);
}

void Couriers::Put(SendSlabs send, Errands* errands) {
  const std::shared_ptr<Outbox> outbox = OutboxOf(send.session);
  if (outbox == nullptr) return;
  SlabFrame frame;
  frame.frame_id = send.packet.frame_id();
  v1::BrokerFrame message;
  v1::Slabs* packet = message.mutable_slabs();
  *packet = std::move(send.packet);
  for (const SlabId slab : send.slabs) {
    SharedHandle handle = keeper_->Get(slab);
    if (const auto* opaque = std::get_if<device::IpcHandle>(handle.get())) {
      packet->add_ipc_handles(opaque->data(), opaque->size());
    } else {
      frame.handles.push_back(std::move(handle));
    }
  }
  frame.bytes = message.SerializeAsString();
  outbox->Push(std::move(frame));
  Pump(send.session, outbox, errands);
}

void Couriers::Put(const ExpectMoves& moves, Errands* /*errands*/) const {
  if (const auto outbox = OutboxOf(moves.session))
    outbox->ExpectMoves(moves.leases);
}

void Couriers::Put(HangUp hang_up, Errands* errands) {
  auto outbox = outboxes_.extract(hang_up.session);
  if (outbox.empty()) return;
  errands->close.emplace_back(std::move(outbox.mapped()),
                              std::move(hang_up.status));
}

void Couriers::Put(Give give, Errands* errands) {
  const auto device = devices_.find(give.pool);
  if (device == devices_.end()) return;  // stopping
  device->second.worker->Push(std::move(give.job));
  errands->workers.push_back(device->second.worker.get());
}

void Couriers::Put(CopySlab copy, Errands* errands) {
  const auto device = devices_.find(copy.pool);
  if (device == devices_.end()) return;  // stopping
  device::CopyJob job;
  job.direction = copy.direction;
  job.group = copy.group;
  job.owner = copy.lease.value;
  job.slab = keeper_->Get(copy.slab);
  job.slab_bytes = copy.slab_bytes;
  job.room = std::move(copy.room);
  job.done = [copied = copied_, lease = copy.lease](
                 const absl::Status& status) { copied(lease, status); };
  // At once, so that no cancel comes before what it cancels.
  device->second.copier->Push(std::move(job));
  errands->copiers.push_back(device->second.copier.get());
}

void Couriers::Put(const CancelCopies& cancel, Errands* errands) {
  const auto device = devices_.find(cancel.pool);
  if (device == devices_.end() || device->second.copier == nullptr) return;
  errands->cancel.emplace_back(device->second.copier.get(), cancel.group);
}

void Couriers::Put(Kill kill, Errands* errands) {
  errands->kill.push_back(std::move(kill));
}

void Couriers::Put(Reply reply, Errands* errands) {
  errands->replies.push_back(std::move(reply));
}

void Couriers::Put(Publish publish, Errands* /*errands*/) {
  events_->Publish(std::move(publish.event));
}

}  // namespace gmb::broker
