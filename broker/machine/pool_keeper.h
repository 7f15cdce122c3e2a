#ifndef GMB_BROKER_MACHINE_POOL_KEEPER_H_
#define GMB_BROKER_MACHINE_POOL_KEEPER_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/machine/device_job.h"
#include "broker/machine/lease.h"
#include "broker/machine/pool.h"
#include "broker/machine/quota_desk.h"
#include "broker/machine/records.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "device/handle.h"
#include "quota/amount.h"
#include "quota/units.h"

namespace gmb::broker {

struct NewPool {
  device::DeviceInfo info;
  uint64_t baseline_bytes = 0;  // free on the device now
  bool has_copier = false;
  uint64_t target_bytes = 0;
  std::optional<quota::Amount> wanted = {};  // see PoolOptions
  uint64_t share_of_bytes = 0;               // likewise
  SlabPool::Options slabs;
};

// The pools: which slabs leases have, what is kept ready, and what the devices
// report.
class PoolKeeper {
 public:
  PoolKeeper(State& state, QuotaDesk& quota) : state_(state), quota_(quota) {}

  [[nodiscard]] absl::StatusOr<quota::PoolId> AddPool(const NewPool& options,
                                                      Turn& turn);
  // The size that was asked for, from now on.
  void SetSize(Pool* pool, const quota::Amount& size, Turn& turn);
  void SetDraining(Pool* pool, bool draining, Turn& turn);

  // Takes over the debts of tenants to another broker.
  void AdoptDebts(Pool* pool, const std::vector<DebtRecord>& debts, Turn& turn);
  // Its tenant is about to be deleted: a debt is nobody's from now on, as the
  // next reading says again. Where the tenant stays that gives it back.
  void Orphan(quota::TenantId tenant, Turn& turn);
  // The slabs of a lease that another broker has granted.
  void Adopt(const Lease& lease);
  // Slabs of another broker that nobody has here; a tenant had them.
  void Refuse(Pool* pool, const std::vector<Slab>& slabs,
              std::optional<quota::TenantId> tenant, Turn& turn);
  // Slabs for a lease. False: some have to be created, SlabsMade follows. Where
  // they are to be filled from the host pool, creates wait until the copier has
  // got on.
  [[nodiscard]] bool Take(Lease* lease, Turn& turn);
  // It is full, or will not be: what is held goes on.
  void Filled(Lease* lease, Turn& turn);
  // The lease's slabs, to serve its tenant for so long before they serve
  // others.
  void GiveBack(Lease* lease, quota::Nanoseconds reuse_for, Turn& turn);
  // Not all of its slabs could be created: it gives up those that it has.
  void GiveUp(Lease* lease, const std::vector<uint64_t>& not_created,
              Turn& turn);
  // Gives a ready slab up, once, so that they may be tried again. Whether
  // another SlabsMade follows.
  [[nodiscard]] bool TryWithoutReady(Lease* lease,
                                     const std::vector<uint64_t>& not_created,
                                     Turn& turn);

  void OnDeviceResult(quota::PoolId pool, const DeviceResult& result,
                      Turn& turn);
  // Every pool may hold from now on as much as the engine says.
  void SyncCapacities() const;
  // Keeps every pool's ready slabs, float and audits going.
  void MaintainPools(Turn& turn);

 private:
  void Give(Pool* pool, DeviceJob job, Turn& turn);
  void GiveHeld(Pool* pool, bool all, Turn& turn);
  void OnMade(Pool* pool, const PrepareJob& job, const DeviceResult& result,
              quota::Instant now);
  void OnRefilled(Pool* pool, const RefillJob& job, const DeviceResult& result,
                  quota::Instant now);
  void OnReading(Pool* pool, const DeviceReading& reading, Turn& turn);
  void WatchRise(Pool* pool, Turn& turn);
  void GrowPool(Pool* pool, Turn& turn);
  void TellUnreturned(Pool* pool, quota::TenantId tenant, uint64_t bytes,
                      Turn& turn);
  void TellMissing(Pool* pool, Turn& turn);
  void OnDeviceLost(Pool* pool, const absl::Status& status, Turn& turn);

  State& state_;
  QuotaDesk& quota_;
};

// Processes that may hold unreturned slabs: those that have a session, and
// those that have had one.
[[nodiscard]] std::vector<pid_t> ClientProcesses(const State& state,
                                                 const Pool& pool);
// Whether a refill of the pool may begin, if one is due.
[[nodiscard]] bool MayRefill(const State& state, const Pool& pool,
                             quota::Instant now);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_POOL_KEEPER_H_
