#ifndef GMB_BROKER_CORE_COURIERS_H_
#define GMB_BROKER_CORE_COURIERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "broker/core/device_worker.h"
#include "broker/core/event_bus.h"
#include "broker/core/keeper.h"
#include "broker/core/outbox.h"
#include "broker/machine/effect.h"
#include "broker/machine/session.h"
#include "device/hostpool/copier.h"
#include "quota/units.h"

namespace gmb::broker {

// Work that is left, outside the core's lock, of effects that are in
// their queues. The order of things is fixed by the queues: this only sets them
// going.
struct Errands {
  std::vector<std::shared_ptr<Outbox>> pump;
  std::vector<std::pair<std::shared_ptr<Outbox>, absl::Status>> close;
  std::vector<DeviceWorker*> workers;
  std::vector<device::Copier*> copiers;
  std::vector<std::pair<device::Copier*, uint64_t>> cancel;  // groups
  std::vector<Kill> kill;
  std::vector<Reply> replies;
  std::vector<uint64_t> overflowed;  // sessions that do not read
  std::vector<Placed<Session>> buried;

  // But for `overflowed`, which the core closes, and `kill`.
  void Run();
};

// Carries the machine's effects out: the outboxes of sessions, the workers
// and copiers of devices, the event bus.
//
// Guarded by the core's lock, under which effects enter the queues in their
// order; so two turns cannot overtake each other. No function makes a system
// call or waits.
class Couriers {
 public:
  // All of them outlive this.
  Couriers(Keeper* keeper, EventBus* events);
  ~Couriers();

  // How the answer to a copy is told: on the copier's thread.
  using Copied = std::function<void(quota::LeaseId, const absl::Status&)>;
  void SetCopied(Copied copied) { copied_ = std::move(copied); }

  // A device's threads. The copier may be null.
  struct Device {
    std::unique_ptr<DeviceWorker> worker;
    std::unique_ptr<device::Copier> copier;
  };
  void AddDevice(quota::PoolId pool, Device device);
  [[nodiscard]] std::map<quota::PoolId, Device> TakeDevices();

  void AddOutbox(uint64_t session, std::shared_ptr<Outbox> outbox);
  // Null: the session has ended.
  [[nodiscard]] std::shared_ptr<Outbox> OutboxOf(uint64_t session) const;

  // Puts effects into their queues.
  [[nodiscard]] Errands Deliver(std::vector<Effect> effects);

 private:
  void Put(Say say, Errands* errands);
  void Put(SendSlabs send, Errands* errands);
  void Put(const ExpectMoves& moves, Errands* errands) const;
  void Put(HangUp hang_up, Errands* errands);
  void Put(Give give, Errands* errands);
  void Put(CopySlab copy, Errands* errands);
  void Put(const CancelCopies& cancel, Errands* errands);
  void Put(Kill kill, Errands* errands);
  void Put(Reply reply, Errands* errands);
  void Put(Publish publish, Errands* errands);
  void Pump(uint64_t session, const std::shared_ptr<Outbox>& outbox,
            Errands* errands);

  Keeper* const keeper_;
  EventBus* const events_;
  Copied copied_;
  std::map<quota::PoolId, Device> devices_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Outbox>> outboxes_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_COURIERS_H_
