// Pools: what their devices are given to do, and what they report.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/news.h"
#include "broker/machine/pool_keeper.h"
#include "broker/machine/recorder.h"

namespace gmb::broker {
namespace {

constexpr quota::Nanoseconds kRefillBackOff = std::chrono::seconds(1);

// Copies into slabs keep refills back for so long at most.
constexpr quota::Nanoseconds kLongestCopyIn = std::chrono::seconds(1);

std::vector<uint64_t> NotCreated(const HandOver& slabs,
                                 const DeviceResult& result) {
  return {slabs.create_bytes.begin() +
              static_cast<std::ptrdiff_t>(result.created.size()),
          slabs.create_bytes.end()};
}

}  // namespace

std::vector<pid_t> ClientProcesses(const State& state, const Pool& pool) {
  if (pool.device->reading.unreturned.empty()) return {};
  std::vector<pid_t> pids(state.sessions->ended_clients().begin(),
                          state.sessions->ended_clients().end());
  for (const auto& [pid, sessions] : state.sessions->processes())
    pids.push_back(pid);
  return pids;
}

absl::StatusOr<quota::PoolId> PoolKeeper::AddPool(const NewPool& options,
                                                  Turn& turn) {
  if (state_.FindPool(options.info.uuid) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("the device is given twice: name each device once: ",
                     options.info.uuid));
  }
  const quota::PoolSet set{quota::PoolId{state_.pools->size() + 1},
                           options.target_bytes,
                           options.info.granularity_bytes};
  if (options.target_bytes > options.baseline_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the pool is larger than the device's free memory: lower --pool, "
        "raise --headroom, or "
        "free the device: device=",
        options.info.uuid, " pool_bytes=", options.target_bytes,
        " free_bytes=", options.baseline_bytes));
  }
  if (state_.engine->Check(set).has_value() ||
      options.target_bytes < set.granularity_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a pool is at least one granule and at most 64 TiB: pool_bytes=",
        options.target_bytes, " granularity_bytes=", set.granularity_bytes));
  }
  state_.pools.Edit({}).emplace(
      set.pool,
      Placed<Pool>(std::make_unique<Pool>(Pool{
          .id = set.pool,
          .info = options.info,
          .has_copier = options.has_copier,
          .slabs = Owned<SlabPool, PoolKeeper>(std::in_place, options.slabs),
          .device = {},
          .copies_in = {},
          .plan = {},
          .guarantee_lacks = {}})));
  PoolDevice& around = state_.PoolAt(set.pool).device.Edit({});
  around.baseline_bytes = options.baseline_bytes;
  around.share_of_bytes = options.share_of_bytes;
  around.wanted = options.wanted;
  around.reading.baseline_bytes = options.baseline_bytes;
  around.reading.free_bytes = options.baseline_bytes;
  Recorder(state_).TouchPool(set.pool);
  quota_.Tell(set, turn);
  for (const auto& [tenant_id, tenant] : *state_.tenants) {
    quota_.Tell(quota::QuotaSet{set.pool, tenant_id,
                                tenant.policy.QuotaOn(options.info.uuid)},
                turn);
  }
  return set.pool;
}

void PoolKeeper::SetSize(Pool* pool, const quota::Amount& size, Turn& turn) {
  pool->device.Edit({}).wanted = size;
  quota_.Tell(quota::PoolSet{pool->id, pool->ResolveSize(size),
                             pool->info.granularity_bytes},
              turn);
}

void PoolKeeper::SetDraining(Pool* pool, bool draining, Turn& turn) {
  pool->device.Edit({}).draining = draining;
  Recorder(state_).TouchPool(pool->id);
  quota_.Tell(quota::PoolDrain{pool->id, draining}, turn);
}

// A later job may need the room that a held job makes by destroying slabs. So the
// held jobs are given first; an audit goes past them, since it only looks.
void PoolKeeper::Give(Pool* pool, DeviceJob job, Turn& turn) {
  if (!std::holds_alternative<AuditJob>(job)) GiveHeld(pool, true, turn);
  ++pool->device.Edit({}).jobs;
  turn.Add(broker::Give{pool->id, std::move(job)});
}

void PoolKeeper::Adopt(const Lease& lease) {
  Pool& pool = state_.PoolAt(lease.request.pool);
  for (const Slab& slab : lease.held->slabs) pool.slabs.Edit({}).Adopt(slab);
}

void PoolKeeper::Refuse(Pool* pool, const std::vector<Slab>& slabs,
                        std::optional<quota::TenantId> tenant, Turn& turn) {
  for (const Slab& slab : slabs) pool->slabs.Edit({}).Adopt(slab);
  std::vector<Condemned> condemned = pool->slabs.Edit({}).Condemn({}, slabs);
  for (Condemned& one : condemned) one.last_holder = tenant;
  if (!condemned.empty()) Give(pool, DestroyJob{std::move(condemned)}, turn);
}

void PoolKeeper::OnDeviceResult(quota::PoolId pool_id,
                                const DeviceResult& result, Turn& turn) {
  Pool* pool = &state_.PoolAt(pool_id);
  --pool->device.Edit({}).jobs;
  pool->slabs.Edit({}).Destroyed(result.destroyed_bytes);
  pool->slabs.Edit({}).Spared(result.spared, turn.now());
  const auto* prepare = std::get_if<PrepareJob>(&result.job);
  // Before what the free figure sets off.
  if (prepare != nullptr) {
    turn.Queue(SlabsMade{prepare->lease, NotCreated(prepare->slabs, result),
                         result.status});
  }
  OnReading(pool, result.reading, turn);
  if (absl::IsUnavailable(result.status))
    OnDeviceLost(pool, result.status, turn);
  if (prepare != nullptr) {
    OnMade(pool, *prepare, result, turn.now());
  } else if (const auto* refill = std::get_if<RefillJob>(&result.job)) {
    OnRefilled(pool, *refill, result, turn.now());
  }
}

void PoolKeeper::OnMade(Pool* pool, const PrepareJob& job,
                        const DeviceResult& result, quota::Instant now) {
  LeaseSlabs& held = state_.LeaseAt(job.lease).held.Edit({});
  held.preparing = false;
  for (const Slab& slab : result.created)
    pool->slabs.Edit({}).Created(slab.bytes);
  held.slabs.insert(held.slabs.end(), result.created.begin(),
                    result.created.end());
  pool->device.Edit({}).mappings.Begin(now, state_.options.mapping_time);
}

void PoolKeeper::OnRefilled(Pool* pool, const RefillJob& job,
                            const DeviceResult& result, quota::Instant now) {
  SlabPool& slabs = pool->slabs.Edit({});
  for (const Slab& slab : result.created) slabs.ReadyCreated(slab);
  for (const uint64_t bytes : NotCreated(job.slabs, result)) {
    slabs.ReadyFailed(bytes);
    pool->device.Edit({}).refill_after = now + kRefillBackOff;
  }
  if (!result.spared.empty())
    pool->device.Edit({}).refill_after = now + kRefillBackOff;
}

void PoolKeeper::OnDeviceLost(Pool* pool, const absl::Status& status,
                              Turn& turn) {
  if (std::exchange(pool->device.Edit({}).lost, true)) return;
  pool->device.Edit({}).problem =
      absl::StrCat("the device is lost; restart the broker once it is back: ",
                   status.message());
  v1::Event event = NewEvent(state_, "device_lost", std::nullopt);
  event.set_device(pool->uuid());
  event.set_message(pool->device->problem);
  turn.Publish(std::move(event));
  quota_.Tell(quota::PoolDrain{pool->id, true}, turn);
}

void PoolKeeper::SyncCapacities() const {
  for (auto& [id, pool] : *state_.pools)
    pool->slabs.Edit({}).SetCapacity(state_.engine->Pool(id)->capacity_bytes);
}

// One step at a time, and none beside a lease being made: the device's one
// worker is never busy for long when a request comes. Nor while bytes come back
// piece by piece for a request: they are its. Nor while slabs are filled, as far
// as that ends soon: the driver clears what is destroyed, and copies are slower
// meanwhile (2 GiB took 51 ms in place of 41). Nor while a client is likely to
// map what it was granted, since the driver serves one of both at a time.
bool MayRefill(const State& state, const Pool& pool, quota::Instant now) {
  const CopiesIn& copies = *pool.copies_in;
  const bool filling = copies.leases > 0 && now < copies.since + kLongestCopyIn;
  return pool.device->jobs == 0 && !filling &&
         now >= pool.device->mappings.end() &&
         state.reclaim->IncomingBytes(pool.id, {}, false) == 0;
}

void PoolKeeper::MaintainPools(Turn& turn) {
  // Slabs made ahead now would go beyond the pool.
  if (state_.options.takes_over && state_.record_news->head.generation == 0)
    return;
  const quota::Instant now = turn.now();
  for (auto& [id, pool] : *state_.pools) {
    if (pool->device->lost) continue;
    std::optional<SlabPool::Refill> refill;
    const bool is_time = now >= pool->device->refill_after;
    if (pool->device->jobs == 0 && is_time)
      refill = pool->slabs.Edit({}).NextShrink();
    if (!refill.has_value() && is_time && MayRefill(state_, *pool, now))
      refill = pool->slabs.Edit({}).NextRefill(now);
    if (refill.has_value()) {
      Give(pool.get(),
           RefillJob{
               {std::move(refill->destroy), std::move(refill->create_bytes)}},
           turn);
    }
    if (now >= pool->device->next_audit) {
      pool->device.Edit({}).audit_interval =
          pool->device->reading.unreturned.empty()
              ? Pool::kAuditInterval
              : std::clamp(pool->device->audit_interval * 2, Pool::kFirstAudit,
                           Pool::kAuditInterval);
      pool->device.Edit({}).next_audit = now + pool->device->audit_interval;
      Give(pool.get(),
           AuditJob{.clients = ClientProcesses(state_, *pool),
                    .raise_baseline_by = 0},
           turn);
    }
  }
}

}  // namespace gmb::broker
