// Changes by operators: tenants and pools.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/machine/news.h"
#include "broker/machine/operator_desk.h"
#include "broker/machine/refusals.h"
#include "broker/machine/tenant_fit.h"
#include "broker/machine/wanted_back.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

v1::Change ChangeOf(const State& state, quota::TenantId tenant,
                    const Pool& pool) {
  const quota::TenantPoolView view = *state.engine->TenantPool(tenant, pool.id);
  const uint64_t to_come =
      view.requested_guarantee_bytes - view.effective_guarantee_bytes;
  v1::Change change;
  change.set_device(pool.uuid());
  change.set_remaining_bytes(std::max(to_come, view.over_limit_bytes));
  change.set_state(change.remaining_bytes() == 0 ? v1::Change::APPLIED
                                                 : v1::Change::PENDING);
  return change;
}

// Those whose guarantees fall come first, so that all of it fits at each step.
std::vector<quota::TenantId> ByGrowth(const State& state, const Pool& pool,
                                      const std::vector<quota::TenantId>& ids) {
  const quota::PoolView view = *state.engine->Pool(pool.id);
  std::vector<std::pair<int64_t, quota::TenantId>> steps;
  for (const quota::TenantId id : ids) {
    const auto now = state.engine->TenantPool(id, pool.id);
    const uint64_t before =
        now.has_value() ? now->requested_guarantee_bytes : 0;
    const uint64_t after =
        state.TenantAt(id)
            .policy.QuotaOn(pool.uuid())
            .guarantee.Resolve(view.target_bytes, view.granularity_bytes);
    steps.emplace_back(
        static_cast<int64_t>(after) - static_cast<int64_t>(before), id);
  }
  std::sort(steps.begin(), steps.end());
  std::vector<quota::TenantId> sorted;
  sorted.reserve(steps.size());
  for (const auto& [growth, id] : steps) sorted.push_back(id);
  return sorted;
}

// Bytes that its processes have given back and still hold are no reason to
// stay.
absl::Status CheckMayGo(const State& state, absl::string_view name) {
  const Tenant* const tenant = state.tenants->Find(name);
  if (tenant == nullptr) return NoSuchTenant(name);
  const size_t sessions = state.sessions->OfTenant(tenant->id).size();
  if (sessions > 0) {
    return proto::MakeError(
        v1::BAD_STATE,
        absl::StrCat(
            "the tenant has live sessions: end them first (`gmb session "
            "list` shows them), or delete it with --wait: tenant=",
            name, " sessions=", sessions));
  }
  const uint64_t leased_bytes = LeasedBytes(state, tenant->id);
  return leased_bytes > 0 ? StillLeased(name, leased_bytes) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<v1::Change>> OperatorDesk::SetTenant(
    const TenantPolicy& policy, Turn& turn) {
  const Tenant* const known = state_.tenants->Find(policy.name);
  if (known == nullptr || known->policy != policy) {
    if (absl::Status checked = CheckFits(policy); !checked.ok()) return checked;
    Put({policy}, turn);
  }
  std::vector<v1::Change> changes;
  const quota::TenantId id = state_.tenants->Find(policy.name)->id;
  for (const auto& [pool_id, pool] : *state_.pools)
    changes.push_back(ChangeOf(state_, id, *pool));
  return changes;
}

void OperatorDesk::Put(const std::vector<TenantPolicy>& tenants, Turn& turn) {
  std::vector<quota::TenantId> ids;
  for (const TenantPolicy& policy : tenants) {
    const bool known = state_.tenants->Find(policy.name) != nullptr;
    const quota::TenantId id =
        ids.emplace_back(state_.tenants.Edit({}).Set(policy).id);
    turn.Publish(
        NewEvent(state_, known ? "tenant_changed" : "tenant_created", id));
    host_.SetLimit(id, policy.reclaim.host_limit.Resolve(
                           state_.host_books->capacity_bytes(),
                           device::kHostPoolGranularityBytes));
    quota_.Tell(quota::TenantSet{id, policy.max_handles}, turn);
  }
  for (const auto& [pool_id, pool] : *state_.pools) {
    std::vector<StandingDemand> limits;
    for (const quota::TenantId id : ByGrowth(state_, *pool, ids)) {
      quota_.Tell(
          quota::QuotaSet{pool_id, id,
                          state_.TenantAt(id).policy.QuotaOn(pool->uuid())},
          turn);
      limits.push_back({.cause = quota::Cause::kOverLimit,
                        .tenant = id,
                        .pool = pool_id,
                        .look = {}});
    }
    reclaimer_.AddStanding(std::move(limits), turn);
  }
}

absl::StatusOr<bool> OperatorDesk::BeginDelete(absl::string_view name) {
  GMB_RETURN_IF_ERROR(CheckMayGo(state_, name));
  // As one whose last session has ended.
  return state_.departures.Edit({})
      .try_emplace(state_.tenants->Find(name)->id)
      .second;
}

absl::Status OperatorDesk::DeleteTenant(absl::string_view name, Turn& turn) {
  GMB_RETURN_IF_ERROR(CheckMayGo(state_, name));
  const quota::TenantId id = state_.tenants->Find(name)->id;
  pools_.Orphan(id, turn);
  turn.Publish(NewEvent(state_, "tenant_deleted", id));
  reclaimer_.EndStandingOf(id, turn);
  quota_.Tell(quota::TenantRemove{id}, turn);
  state_.tenants.Edit({}).Remove(id);
  host_.ForgetTenant(id);
  index_.ForgetTenant(id);
  state_.departures.Edit({}).erase(id);
  return absl::OkStatus();
}

absl::StatusOr<TenantPolicy> OperatorDesk::GetPolicy(
    absl::string_view name) const {
  const Tenant* tenant = state_.tenants->Find(name);
  if (tenant == nullptr) return NoSuchTenant(name);
  return tenant->policy;
}

absl::StatusOr<quota::TenantId> OperatorDesk::IdOf(
    absl::string_view name) const {
  const Tenant* tenant = state_.tenants->Find(name);
  if (tenant == nullptr) return NoSuchTenant(name);
  return tenant->id;
}

absl::StatusOr<std::string> OperatorDesk::ResolveDevice(
    absl::string_view device) const {
  const Pool* pool = state_.FindPool(device);
  if (pool == nullptr) return NoSuchDevice(device);
  return pool->uuid();
}

absl::Status OperatorDesk::CheckResize(const std::string& device,
                                       const quota::Amount& size) const {
  const Pool* pool = state_.FindPool(device);
  if (pool == nullptr) return NoSuchDevice(device);
  const uint64_t bytes = pool->ResolveSize(size);
  if (!size.IsValid() || bytes == 0 || bytes > pool->device->baseline_bytes) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat(
            "a pool is at least one granule and at most the device's memory "
            "that others leave free: bytes=",
            bytes, " free_bytes=", pool->device->baseline_bytes),
        {.field = "size"});
  }
  const quota::PoolSet change{pool->id, bytes, pool->info.granularity_bytes};
  if (std::optional<quota::Refusal> refusal = state_.engine->Check(change)) {
    return RefusalStatus(*refusal, pool->uuid());
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Change> OperatorDesk::ResizePool(const std::string& device,
                                                    const quota::Amount& size,
                                                    Turn& turn) {
  if (absl::Status checked = CheckResize(device, size); !checked.ok())
    return checked;
  v1::Change change;
  Pool* pool = state_.FindPool(device);
  const uint64_t bytes = pool->ResolveSize(size);
  pools_.SetSize(pool, size, turn);
  v1::Event event = NewEvent(state_, "pool_resized", std::nullopt);
  event.set_device(pool->uuid());
  event.set_bytes(bytes);
  turn.Publish(std::move(event));
  // Limits may be shares of it.
  reclaimer_.AddStanding(DemandsOf(state_, pool->id), turn);
  // It is applied when the device has the rest back, and not before. Bytes that
  // are unreturned or missing are no part of a shrink.
  const Composition held = pool->slabs->composition();
  const quota::PoolView view = *state_.engine->Pool(pool->id);
  const uint64_t held_bytes = std::max(
      view.capacity_bytes, held.granted_bytes + held.returned_bytes +
                               held.ready_bytes + held.scrubbing_bytes);
  change.set_device(pool->uuid());
  change.set_remaining_bytes(held_bytes -
                             std::min(held_bytes, view.target_bytes));
  change.set_state(change.remaining_bytes() == 0 ? v1::Change::APPLIED
                                                 : v1::Change::PENDING);
  return change;
}

absl::StatusOr<uint64_t> OperatorDesk::DrainPool(const std::string& device,
                                                 bool draining, Turn& turn) {
  uint64_t leased = 0;
  Pool* pool = state_.FindPool(device);
  if (pool == nullptr) return NoSuchDevice(device);
  if (!draining && (pool->device->lost || state_.drain_until->has_value())) {
    return proto::MakeError(
        v1::BAD_STATE,
        "the device is lost, or the broker is stopping: a restart "
        "of the broker brings it back into service");
  }
  pools_.SetDraining(pool, draining, turn);
  v1::Event event = NewEvent(
      state_, draining ? "pool_draining" : "pool_in_service", std::nullopt);
  event.set_device(pool->uuid());
  turn.Publish(std::move(event));
  reclaimer_.AddStanding(
      {{.cause = quota::Cause::kPoolDrain, .pool = pool->id, .look = {}}},
      turn);
  leased = state_.engine->Pool(pool->id)->leased_bytes;
  return leased;
}

}  // namespace gmb::broker
