// The device's free figure tells of unreturned, outside and missing bytes.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/granularity.h"
#include "broker/machine/news.h"
#include "broker/machine/pool_keeper.h"
#include "broker/machine/recorder.h"

namespace gmb::broker {
namespace {

// Memory that others have given back is taken for good if it stays free for so
// long.
constexpr quota::Nanoseconds kRiseLasts = std::chrono::seconds(5);
// Of the device, at least this part: no pool grows because one process less
// has a CUDA context.
constexpr uint64_t kLeastRise = 256;

// Once, when it begins: how much it is later, unreturned_changed says.
void TellStuck(const State& state, const Pool& pool,
               const DeviceReading& before, Turn& turn) {
  for (const auto& [holder, stuck] : pool.device->reading.stuck) {
    if (before.stuck.contains(holder)) continue;
    v1::Event event = NewEvent(state, "unreturned_stuck", holder);
    event.set_device(pool.uuid());
    event.set_bytes(stuck.bytes);
    event.set_message(stuck.why);
    turn.Publish(std::move(event));
  }
}

}  // namespace

void PoolKeeper::OnReading(Pool* pool, const DeviceReading& reading,
                           Turn& turn) {
  const uint64_t granularity = pool->info.granularity_bytes;
  const DeviceReading before =
      std::exchange(pool->device.Edit({}).reading, reading);
  std::map<quota::TenantId, uint64_t> owed;
  uint64_t orphaned = 0;
  for (const auto& [tenant, bytes] : reading.unreturned) {
    const uint64_t rounded = RoundUp(bytes, granularity);
    if (state_.tenants->Find(tenant) != nullptr) {
      owed[tenant] = rounded;
    } else {
      orphaned += rounded;  // its tenant has been deleted: it is nobody's debt
    }
  }
  const uint64_t capacity = state_.engine->Pool(pool->id)->capacity_bytes;
  const uint64_t headroom =
      reading.baseline_bytes - std::min(reading.baseline_bytes, capacity);
  const uint64_t beyond =
      reading.outside_bytes - std::min(reading.outside_bytes, headroom);
  const uint64_t missing = std::min(RoundUp(beyond, granularity), capacity);
  const auto owed_before =
      std::exchange(pool->device.Edit({}).unreturned, owed);
  const uint64_t missing_before =
      std::exchange(pool->device.Edit({}).missing_bytes, missing);
  const uint64_t orphaned_before =
      std::exchange(pool->device.Edit({}).orphaned_bytes, orphaned);
  // The slabs' books first: what the engine is told may make it grant.
  uint64_t sum = 0;
  for (const auto& [tenant, bytes] : owed) sum += bytes;
  pool->slabs.Edit({}).SetLost({.unreturned_bytes = sum,
                                .missing_bytes = missing,
                                .orphaned_bytes = orphaned});
  for (const auto& [tenant, bytes] : owed) {
    auto it = owed_before.find(tenant);
    if (it == owed_before.end() || it->second != bytes) {
      TellUnreturned(pool, tenant, bytes, turn);
    }
  }
  for (const auto& [tenant, bytes] : owed_before) {
    if (!owed.contains(tenant)) TellUnreturned(pool, tenant, 0, turn);
  }
  if (missing != missing_before || orphaned != orphaned_before)
    TellMissing(pool, turn);
  TellStuck(state_, *pool, before, turn);
  GrowPool(pool, turn);
  WatchRise(pool, turn);
}

// The books first, as after a reading, and at once: a tenant that owes does not
// get as much as one that does not. The first reading says what of it is back.
void PoolKeeper::AdoptDebts(Pool* pool, const std::vector<DebtRecord>& debts,
                            Turn& turn) {
  const uint64_t capacity = state_.engine->Pool(pool->id)->capacity_bytes;
  PoolDevice& device = pool->device.Edit({});
  uint64_t sum = 0;
  AuditJob job{.clients = ClientProcesses(state_, *pool)};
  for (const DebtRecord& debt : debts) {
    const uint64_t bytes = std::min(
        RoundDown(debt.bytes, pool->info.granularity_bytes), capacity - sum);
    if (bytes == 0) continue;
    sum += bytes;
    const Tenant* tenant = state_.tenants->Find(debt.tenant);
    job.inherited[tenant == nullptr ? quota::TenantId{} : tenant->id] += bytes;
    if (tenant == nullptr) {
      device.orphaned_bytes += bytes;
    } else {
      device.unreturned[tenant->id] += bytes;
    }
  }
  if (sum == 0) return;
  device.reading.unreturned = job.inherited;
  pool->slabs.Edit({}).SetLost({.unreturned_bytes = sum - device.orphaned_bytes,
                                .missing_bytes = 0,
                                .orphaned_bytes = device.orphaned_bytes});
  for (const auto& [tenant, bytes] : std::map(device.unreturned))
    TellUnreturned(pool, tenant, bytes, turn);
  if (device.orphaned_bytes > 0) TellMissing(pool, turn);
  Give(pool, std::move(job), turn);
}

void PoolKeeper::Orphan(quota::TenantId tenant, Turn& turn) {
  for (const auto& [pool_id, pool] : *state_.pools) {
    PoolDevice& device = pool->device.Edit({});
    const auto debt = device.unreturned.extract(tenant);
    if (debt.empty()) continue;
    device.orphaned_bytes += debt.mapped();
    uint64_t sum = 0;
    for (const auto& [other, bytes] : device.unreturned) sum += bytes;
    pool->slabs.Edit({}).SetLost({.unreturned_bytes = sum,
                                  .missing_bytes = device.missing_bytes,
                                  .orphaned_bytes = device.orphaned_bytes});
    // Missing before they are no longer owed: or they would be granted.
    TellMissing(pool.get(), turn);
    TellUnreturned(pool.get(), tenant, 0, turn);
  }
}

// A process that held memory when the broker started, such as a client of one
// that was killed, has ended. Unreturned bytes that come back look the same, so
// that nothing is concluded while there are any.
void PoolKeeper::WatchRise(Pool* pool, Turn& turn) {
  PoolDevice& device = pool->device.Edit({});
  const DeviceReading& reading = device.reading;
  if (!reading.unreturned.empty()) return;
  const uint64_t least = std::max(pool->info.granularity_bytes,
                                  pool->info.total_bytes / kLeastRise);
  if (reading.risen_bytes < least) return device.rise.reset();
  if (!device.rise.has_value()) device.rise = {turn.now(), reading.risen_bytes};
  device.rise->bytes = std::min(device.rise->bytes, reading.risen_bytes);
  if (turn.now() - device.rise->since < kRiseLasts) return;
  Give(pool,
       AuditJob{.clients = ClientProcesses(state_, *pool),
                .raise_baseline_by = device.rise->bytes},
       turn);
  device.rise.reset();
}

// To the size that was asked for, or what the device allows of it.
void PoolKeeper::GrowPool(Pool* pool, Turn& turn) {
  PoolDevice& device = pool->device.Edit({});
  const uint64_t baseline = device.reading.baseline_bytes;
  if (baseline <= device.baseline_bytes) return;
  device.share_of_bytes += baseline - device.baseline_bytes;
  device.baseline_bytes = baseline;
  Recorder(state_).TouchPool(pool->id);
  if (!device.wanted.has_value()) return;
  const uint64_t bytes =
      std::min(pool->ResolveSize(*device.wanted),
               RoundDown(baseline, pool->info.granularity_bytes));
  const quota::PoolSet change{pool->id, bytes, pool->info.granularity_bytes};
  if (bytes <= state_.engine->Pool(pool->id)->target_bytes ||
      state_.engine->Check(change).has_value()) {
    return;
  }
  v1::Event event = NewEvent(state_, "pool_grown", std::nullopt);
  event.set_device(pool->uuid());
  event.set_bytes(bytes);
  turn.Publish(std::move(event));
  quota_.Tell(change, turn);
}

void PoolKeeper::TellUnreturned(Pool* pool, quota::TenantId tenant,
                                uint64_t bytes, Turn& turn) {
  Recorder(state_).TouchPool(pool->id);
  v1::Event event = NewEvent(state_, "unreturned_changed", tenant);
  event.set_device(pool->uuid());
  event.set_bytes(bytes);
  turn.Publish(std::move(event));
  pool->device.Edit({}).audit_interval = Pool::kFirstAudit;
  pool->device.Edit({}).next_audit = turn.now() + Pool::kFirstAudit;
  quota_.Tell(quota::UnreturnedChanged{pool->id, tenant, bytes}, turn);
}

void PoolKeeper::TellMissing(Pool* pool, Turn& turn) {
  Recorder(state_).TouchPool(pool->id);
  v1::Event event = NewEvent(state_, "missing_changed", std::nullopt);
  event.set_device(pool->uuid());
  const uint64_t missing =
      pool->device->missing_bytes + pool->device->orphaned_bytes;
  event.set_bytes(missing);
  event.set_message(
      absl::StrCat("outside_bytes=", pool->device->reading.outside_bytes,
                   " of_deleted_tenants_bytes=", pool->device->orphaned_bytes));
  turn.Publish(std::move(event));
  quota_.Tell(
      quota::MissingChanged{pool->id, missing, pool->device->orphaned_bytes},
      turn);
}

}  // namespace gmb::broker
