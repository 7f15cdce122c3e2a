// Records that another broker has left are believed as far as they fit
// together.
#include "broker/machine/adopt_check.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "quota/units.h"

namespace gmb::broker {
namespace {

absl::Status CheckSlabs(const LeaseRecord& record, const Adoption& adoption,
                        std::set<SlabId>* taken) {
  uint64_t bytes = 0;
  std::set<SlabId> its;
  for (const SlabRecord& slab : record.slabs) {
    const auto imported = adoption.slabs.find(slab.id);
    if (imported == adoption.slabs.end()) {
      return absl::DataLossError(
          absl::StrCat("the device did not take this slab: slab=", slab.id));
    }
    if (imported->second.bytes != slab.bytes || slab.bytes > record.bytes)
      return absl::DataLossError("a slab has another size than was recorded");
    if (taken->contains(slab.id) || !its.insert(slab.id).second)
      return absl::DataLossError("a slab is another lease's too");
    bytes += slab.bytes;
  }
  if (bytes != record.bytes)
    return absl::DataLossError("its slabs are not all of it");
  taken->merge(its);
  return absl::OkStatus();
}

bool NeedsCopyToBeWhole(const LeaseRecord& record) {
  return record.contents == v1::PRESERVE &&
         (record.torn || record.place == LeaseRecord::Place::kHost);
}

}  // namespace

bool KeepWhatLives(const State& state, LeaseRecord* record) {
  std::erase_if(record->mappings, [&](const MappingRecord& mapping) {
    return state.sessions->Find(mapping.session) == nullptr;
  });
  if (!record->mappings.empty()) return true;
  return record->shared && record->keep && !record->dropped;
}

absl::Status CheckRecord(const State& state, const LeaseRecord& record,
                         const Adoption& adoption, std::set<SlabId>* taken) {
  const Tenant* tenant = state.tenants->Find(record.tenant);
  if (tenant == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("its tenant is no more: tenant=", record.tenant));
  }
  const Pool* pool =
      record.device.empty() ? nullptr : state.FindPool(record.device);
  if (pool == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "this broker does not serve its device: device=", record.device));
  }
  const bool sane = record.id != 0 && record.bytes > 0 &&
                    record.bytes <= quota::kMaxPoolBytes &&
                    record.bytes % pool->info.granularity_bytes == 0 &&
                    v1::Contents_IsValid(record.contents) &&
                    !state.engine->Lease(quota::LeaseId{record.id});
  if (!sane) return absl::DataLossError("its record makes no sense");
  // One session has a lease once, and they are of its tenant.
  std::set<uint64_t> sessions;
  for (const MappingRecord& mapping : record.mappings) {
    if (!sessions.insert(mapping.session).second ||
        state.SessionAt(mapping.session).tenant != tenant->id)
      return absl::DataLossError("its record names sessions that are not its");
  }
  if (!record.shared && (record.mappings.size() != 1 ||
                         record.mappings.front().session != record.session))
    return absl::DataLossError("it is not shared and has other users");
  if (NeedsCopyToBeWhole(record) && !record.room_is_true)
    return absl::DataLossError("its contents are nowhere");
  if (record.place == LeaseRecord::Place::kHost) return absl::OkStatus();
  return CheckSlabs(record, adoption, taken);
}

}  // namespace gmb::broker
