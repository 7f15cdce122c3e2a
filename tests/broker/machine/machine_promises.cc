#include "tests/broker/machine/machine_promises.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/reclaim_rows.h"

namespace gmb::broker {
namespace {

// Bytes that a client does not give back count as hard, whatever was promised
// to others. They stay so until its tenant owes no answer, on any device.
bool IsKept(const State& state, const Lease& lease) {
  if (lease.life->doomed) return true;  // of one who has ended, still copied
  if (state.owed->OfTenant(lease.tenant) > 0 &&
      state.engine->Lease(lease.id)->hard) {
    return true;
  }
  return std::any_of(lease.move->mappings.begin(), lease.move->mappings.end(),
                     [](const Mapping& mapping) {
                       return mapping.overdue || mapping.refusals > 1;
                     });
}

uint64_t KeptBytes(const State& state, const Pool& pool) {
  uint64_t bytes = 0;
  for (const auto& [id, lease] : *state.leases) {
    if (lease->request.pool == pool.id && IsKept(state, *lease))
      bytes += lease->bytes;
  }
  return bytes;
}

uint64_t PromisedBytes(const State& state, const Pool& pool) {
  uint64_t bytes = 0;
  for (const auto& [id, tenant] : *state.tenants) {
    const auto held = state.engine->TenantPool(id, pool.id);
    if (held.has_value())
      bytes += std::max(held->effective_guarantee_bytes, held->hard_bytes);
  }
  return bytes;
}

// Whether its one request is within its guarantee, and its limit.
bool WaitsForItsOwn(const quota::TenantPoolView& held) {
  const uint64_t left_bytes =
      held.effective_guarantee_bytes -
      std::min(held.effective_guarantee_bytes, held.resident_bytes);
  const bool is_allowed =
      held.leased_bytes + held.unreturned_bytes + held.waiting_bytes <=
      held.limit_bytes;
  return held.waiting == 1 && held.waiting_bytes <= left_bytes && is_allowed;
}

// One within its guarantee that has not all of its bytes, also with those that
// are on their way, is seen to lack them, whoever keeps what he was told to give
// back.
std::string WhoIsNotNoticed(const State& state, const Pool& pool) {
  if (ShortageIn(state, pool.id, true).has_value()) return "";
  const quota::PoolView view = *state.engine->Pool(pool.id);
  const uint64_t there_bytes =
      view.capacity_bytes - std::min(view.capacity_bytes, view.charged_bytes) +
      state.reclaim->IncomingBytes(pool.id, {}, true);
  for (const auto& [id, tenant] : *state.tenants) {
    const auto held = state.engine->TenantPool(id, pool.id);
    if (!held.has_value() || !WaitsForItsOwn(*held)) continue;
    if (held->waiting_bytes <= there_bytes) continue;
    return absl::StrCat("tenant ", id.value, " waits within its guarantee for ",
                        held->waiting_bytes, ", there are ", there_bytes,
                        ", and nobody sees that it lacks any");
  }
  return "";
}

}  // namespace

std::string WhichPromiseIsBroken(const State& state, const Pool& pool) {
  const uint64_t promised_bytes = PromisedBytes(state, pool);
  const uint64_t kept_bytes = KeptBytes(state, pool);
  const uint64_t capacity_bytes = state.engine->Pool(pool.id)->capacity_bytes;
  if (promised_bytes > capacity_bytes + kept_bytes) {
    return absl::StrCat("guarantees and hard bytes are ", promised_bytes,
                        ", the capacity ", capacity_bytes,
                        ", and clients keep ", kept_bytes);
  }
  return WhoIsNotNoticed(state, pool);
}

}  // namespace gmb::broker
