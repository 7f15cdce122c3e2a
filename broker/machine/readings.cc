// What the device's free figure says: unreturned, outside and missing bytes.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/granularity.h"
#include "broker/machine/machine.h"
#include "broker/machine/turn.h"

namespace gmb::broker {
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
