// What the device's free figure says: unreturned, outside and missing bytes.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/granularity.h"
#include "broker/machine/machine.h"
#include "broker/machine/turn.h"

namespace gmb::broker {
namespace {

// What others have given back is taken for good if it stays free for so long.
constexpr quota::Nanoseconds kRiseLasts = std::chrono::seconds(5);
// Of the device, at least this part: no pool grows because one process less
// has a CUDA context.
constexpr uint64_t kLeastRise = 256;

}  // namespace

void Machine::OnReading(Pool* pool, const DeviceReading& reading, Turn& turn) {
  const uint64_t granularity = pool->info.granularity_bytes;
  const DeviceReading before = std::exchange(pool->reading, reading);
  std::map<quota::TenantId, uint64_t> owed;
  uint64_t orphaned = 0;
  for (const auto& [tenant, bytes] : reading.unreturned) {
    const uint64_t rounded = RoundUp(bytes, granularity);
    if (state_.tenants.Find(tenant) != nullptr) {
      owed[tenant] = rounded;
    } else {
      orphaned += rounded;  // its tenant has been deleted: it is nobody's debt
    }
  }
  const uint64_t capacity = state_.engine.Pool(pool->id)->capacity_bytes;
  const uint64_t headroom =
      reading.baseline_bytes - std::min(reading.baseline_bytes, capacity);
  const uint64_t beyond =
      reading.outside_bytes - std::min(reading.outside_bytes, headroom);
  const uint64_t missing = std::min(RoundUp(beyond, granularity), capacity);
  const auto owed_before = std::exchange(pool->unreturned, owed);
  const uint64_t missing_before = std::exchange(pool->missing_bytes, missing);
  const uint64_t orphaned_before =
      std::exchange(pool->orphaned_bytes, orphaned);
  // The slabs' books first: what the engine is told may make it grant.
  uint64_t sum = 0;
  for (const auto& [tenant, bytes] : owed) sum += bytes;
  pool->slabs.SetUnreturned(sum);
  pool->slabs.SetMissing(missing);
  pool->slabs.SetOrphaned(orphaned);
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
  TellStuck(*pool, before, turn);
  GrowPool(pool, turn);
  WatchRise(pool, turn);
}

// Who held memory when the broker started, such as a client of one that was
// killed, has ended. Unreturned bytes that come back look the same, so that
// nothing is concluded while there are any.
void Machine::WatchRise(Pool* pool, Turn& turn) {
  const DeviceReading& reading = pool->reading;
  if (!reading.unreturned.empty()) return;
  const uint64_t least = std::max(pool->info.granularity_bytes,
                                  pool->info.total_bytes / kLeastRise);
  if (reading.risen_bytes < least) return pool->rise.reset();
  if (!pool->rise.has_value()) pool->rise = {turn.now(), reading.risen_bytes};
  pool->rise->bytes = std::min(pool->rise->bytes, reading.risen_bytes);
  if (turn.now() - pool->rise->since < kRiseLasts) return;
  Give(pool,
       AuditJob{.clients = ClientProcesses(*pool),
                .raise_baseline_by = pool->rise->bytes},
       turn);
  pool->rise.reset();
}

// To the size that was asked for, or what the device allows of it.
void Machine::GrowPool(Pool* pool, Turn& turn) {
  const uint64_t baseline = pool->reading.baseline_bytes;
  if (baseline <= pool->baseline_bytes) return;
  pool->share_of_bytes += baseline - pool->baseline_bytes;
  pool->baseline_bytes = baseline;
  if (!pool->wanted.has_value()) return;
  const uint64_t bytes =
      std::min(pool->ResolveSize(*pool->wanted),
               RoundDown(baseline, pool->info.granularity_bytes));
  const quota::PoolSet change{pool->id, bytes, pool->info.granularity_bytes};
  if (bytes <= state_.engine.Pool(pool->id)->target_bytes ||
      state_.engine.Check(change).has_value()) {
    return;
  }
  v1::Event event = NewEvent("pool_grown", std::nullopt);
  event.set_device(pool->uuid());
  event.set_bytes(bytes);
  turn.Publish(std::move(event));
  Tell(change, turn);
}

void Machine::TellUnreturned(Pool* pool, quota::TenantId tenant, uint64_t bytes,
                             Turn& turn) {
  v1::Event event = NewEvent("unreturned_changed", tenant);
  event.set_device(pool->uuid());
  event.set_bytes(bytes);
  turn.Publish(std::move(event));
  pool->audit_interval = Pool::kFirstAudit;
  pool->next_audit = turn.now() + Pool::kFirstAudit;
  Tell(quota::UnreturnedChanged{pool->id, tenant, bytes}, turn);
}

void Machine::TellMissing(Pool* pool, Turn& turn) {
  v1::Event event = NewEvent("missing_changed", std::nullopt);
  event.set_device(pool->uuid());
  const uint64_t missing = pool->missing_bytes + pool->orphaned_bytes;
  event.set_bytes(missing);
  event.set_message(
      absl::StrCat("outside_bytes=", pool->reading.outside_bytes,
                   " of_deleted_tenants_bytes=", pool->orphaned_bytes));
  turn.Publish(std::move(event));
  Tell(quota::MissingChanged{pool->id, missing, pool->orphaned_bytes}, turn);
}

// Once, when it begins: how much it is later, unreturned_changed says.
void Machine::TellStuck(const Pool& pool, const DeviceReading& before,
                        Turn& turn) {
  for (const auto& [holder, stuck] : pool.reading.stuck) {
    if (before.stuck.contains(holder)) continue;
    v1::Event event = NewEvent("unreturned_stuck", holder);
    event.set_device(pool.uuid());
    event.set_bytes(stuck.bytes);
    event.set_message(stuck.why);
    turn.Publish(std::move(event));
  }
}

}  // namespace gmb::broker
