// Slabs on their way to leases and back.
#include <optional>
#include <utility>
#include <vector>

#include "broker/machine/pool_keeper.h"

namespace gmb::broker {

bool PoolKeeper::Take(Lease* lease, Turn& turn) {
  Pool* pool = &state_.PoolAt(lease->request.pool);
  TakePlan plan = pool->slabs.Edit({}).Take(lease->tenant, lease->bytes);
  const bool to_fill = lease->move->residence == Residence::kRestoring &&
                       lease->request.contents == v1::PRESERVE;
  LeaseSlabs& held = lease->held.Edit({});
  held.slabs = std::move(plan.taken);
  // It makes nobody wait for the device, and so does not count as being filled:
  // or leases that find their own slabs again would keep others' from being
  // made.
  if (plan.create_bytes.empty()) {
    pool->device.Edit({}).mappings.Begin(turn.now(),
                                         state_.options.mapping_time);
    return true;
  }
  held.preparing = true;
  PrepareJob job{lease->id,
                 {std::move(plan.destroy), std::move(plan.create_bytes)}};
  if (to_fill) {
    ++pool->device.Edit({}).jobs;
    pool->device.Edit({}).paced.Hold(std::move(job));
    GiveHeld(pool, /*all=*/false, turn);
  } else {
    Give(pool, std::move(job), turn);
  }
  return false;
}

// Those that are due, or all. Of a lease that has ended meanwhile nothing will
// be filled.
void PoolKeeper::GiveHeld(Pool* pool, bool all, Turn& turn) {
  PacedCreates& paced = pool->device.Edit({}).paced;
  while (paced.holds_any()) {
    Lease* lease = &state_.LeaseAt(paced.first().lease);
    if (!all && !paced.IsDue(state_.options.fill_ahead_bytes) &&
        !lease->life->doomed) {
      return;
    }
    lease->held.Edit({}).filling = true;
    paced.BeginFilling(lease->bytes);
    turn.Add(broker::Give{pool->id, paced.TakeFirst()});
  }
}

void PoolKeeper::Filled(Lease* lease, Turn& turn) {
  if (!lease->held->filling) return;
  lease->held.Edit({}).filling = false;
  Pool* pool = &state_.PoolAt(lease->request.pool);
  pool->device.Edit({}).paced.EndFilling(lease->bytes);
  GiveHeld(pool, /*all=*/false, turn);
}

// Also slabs that nobody will ask for again are kept until others have a use
// for their bytes (MaintainPools, or the next lease): the worker destroys and
// creates them in turn, so that little lies free for somebody outside to take.
// Of an exported lease they are destroyed at once, whatever else fails: a
// process that imported a handle may have it still.
void PoolKeeper::GiveBack(Lease* lease, quota::Nanoseconds reuse_for,
                          Turn& turn) {
  Filled(lease, turn);
  Pool* pool = &state_.PoolAt(lease->request.pool);
  SlabPool& slabs = pool->slabs.Edit({});
  const std::vector<Slab> given = std::exchange(lease->held.Edit({}).slabs, {});
  const bool kept = !pool->device->lost && !lease->exported() &&
                    slabs.Return(lease->tenant, given, turn.now() + reuse_for);
  if (!kept) Give(pool, DestroyJob{slabs.Condemn(lease->tenant, given)}, turn);
}

void PoolKeeper::GiveUp(Lease* lease, const std::vector<uint64_t>& not_created,
                        Turn& turn) {
  SlabPool& slabs = state_.PoolAt(lease->request.pool).slabs.Edit({});
  for (const uint64_t bytes : not_created) slabs.CreateFailed(bytes);
  Filled(lease, turn);
  if (!lease->held->slabs.empty()) GiveBack(lease, {}, turn);
}

// Not more than one, and none while somebody outside takes what is freed: that
// one would win every slab given up. Nor while a keeper that is silent keeps it.
bool PoolKeeper::TryWithoutReady(Lease* lease,
                                 const std::vector<uint64_t>& not_created,
                                 Turn& turn) {
  Pool* pool = &state_.PoolAt(lease->request.pool);
  if (pool->device->missing_bytes > 0 ||
      pool->device->reading.destroyed_is_kept || lease->held->gave_up_ready) {
    return false;
  }
  lease->held.Edit({}).gave_up_ready = true;
  const std::optional<Condemned> ready = pool->slabs.Edit({}).GiveUpReady();
  if (!ready.has_value()) return false;
  lease->held.Edit({}).preparing = true;
  Give(pool, PrepareJob{lease->id, {{*ready}, not_created}}, turn);
  return true;
}

}  // namespace gmb::broker
