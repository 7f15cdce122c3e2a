// What operators change: tenants and pools.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/refusals.h"
#include "broker/tenant_name.h"
#include "proto/error_status.h"

namespace gmb::broker {

Pool* Core::FindPool(absl::string_view device) const {
  if (device.empty())
    return pools_.size() == 1 ? pools_.begin()->second.get() : nullptr;
  for (const auto& [id, pool] : pools_) {
    if (pool->uuid() == device) return pool.get();
  }
  return nullptr;
}

absl::Status Core::CheckTenant(const TenantPolicy& policy) const {
  if (!IsValidTenantName(policy.name)) {
    return proto::MakeError(v1::BAD_REQUEST, kTenantNameRule,
                            {.field = "name"});
  }
  if (policy.max_handles == 0 || policy.max_sessions == 0) {
    return proto::MakeError(
        v1::BAD_REQUEST, "max_handles and max_sessions are at least 1",
        {.field = policy.max_handles == 0 ? "max_handles" : "max_sessions"});
  }
  ipc::MutexLock lock(&mu_);
  for (const auto& [device, quota] : policy.device_quotas) {
    if (FindPool(device) == nullptr) return NoSuchDevice(device);
  }
  const Tenant* known = tenants_.Find(policy.name);
  const quota::TenantId id = known != nullptr ? known->id : tenants_.next_id();
  for (const auto& [pool_id, pool] : pools_) {
    const quota::QuotaSet change{pool_id, id, policy.QuotaOn(pool->uuid())};
    if (std::optional<quota::Refusal> refusal = engine_.Check(change)) {
      return RefusalStatus(*refusal, pool->uuid());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::Change>> Core::SetTenant(
    const TenantPolicy& policy) {
  if (absl::Status checked = CheckTenant(policy); !checked.ok()) return checked;
  Afterwards after;
  std::vector<v1::Change> changes;
  {
    ipc::MutexLock lock(&mu_);
    const bool known = tenants_.Find(policy.name) != nullptr;
    const quota::TenantId id = tenants_.Set(policy).id;
    deps_.events->Publish(
        NewEvent(known ? "tenant_changed" : "tenant_created", id));
    host_books_.SetLimit(id, policy.reclaim.host_limit.Resolve(
                                 host_books_.capacity_bytes(),
                                 device::kHostPoolGranularityBytes));
    Tell(quota::TenantSet{id, policy.max_handles}, &after);
    for (const auto& [pool_id, pool] : pools_) {
      Tell(quota::QuotaSet{pool_id, id, policy.QuotaOn(pool->uuid())}, &after);
      changes.push_back(ChangeOf(id, *pool));
      AddStanding(
          {.cause = quota::Cause::kOverLimit, .tenant = id, .pool = pool_id});
    }
    Maintain(&after);
  }
  after.Run(this);
  return changes;
}

v1::Change Core::ChangeOf(quota::TenantId tenant, const Pool& pool) const {
  const quota::TenantPoolView view = *engine_.TenantPool(tenant, pool.id);
  const uint64_t to_come =
      view.requested_guarantee_bytes - view.effective_guarantee_bytes;
  v1::Change change;
  change.set_device(pool.uuid());
  change.set_remaining_bytes(std::max(to_come, view.over_limit_bytes));
  change.set_state(change.remaining_bytes() == 0 ? v1::Change::APPLIED
                                                 : v1::Change::PENDING);
  return change;
}

absl::Status Core::CheckDeleteTenant(absl::string_view name) const {
  ipc::MutexLock lock(&mu_);
  const Tenant* tenant = tenants_.Find(name);
  if (tenant == nullptr) return NoSuchTenant(name);
  if (!tenant->sessions.empty()) {
    return proto::MakeError(
        v1::BAD_STATE,
        absl::StrCat(
            "the tenant has live sessions: end them first (`gmb session "
            "list` shows them), or delete it with --wait: tenant=",
            name, " sessions=", tenant->sessions.size()));
  }
  if (std::optional<quota::Refusal> refusal =
          engine_.Check(quota::TenantRemove{tenant->id})) {
    return RefusalStatus(*refusal, "");
  }
  return absl::OkStatus();
}

absl::Status Core::DeleteTenant(absl::string_view name) {
  if (absl::Status checked = CheckDeleteTenant(name); !checked.ok())
    return checked;
  Afterwards after;
  {
    ipc::MutexLock lock(&mu_);
    const Tenant* tenant = tenants_.Find(name);
    // A session may have come since the check.
    if (tenant == nullptr) return NoSuchTenant(name);
    if (!tenant->sessions.empty()) {
      return proto::MakeError(
          v1::BAD_STATE, "the tenant has just opened a session: end it first");
    }
    const quota::TenantId id = tenant->id;
    if (std::optional<quota::Refusal> refusal =
            engine_.Check(quota::TenantRemove{id})) {
      return RefusalStatus(*refusal, "");
    }
    deps_.events->Publish(NewEvent("tenant_deleted", id));
    const auto its = [id](const StandingDemand& demand) {
      return demand.tenant == id;
    };
    for (StandingDemand& demand : standing_) {
      if (its(demand)) FinishStanding(&demand, {}, &after);
    }
    standing_.remove_if(its);
    Tell(quota::TenantRemove{id}, &after);
    tenants_.Remove(id);
    host_books_.ForgetTenant(id);
    departures_.erase(id);
    Maintain(&after);
  }
  after.Run(this);
  return absl::OkStatus();
}

absl::StatusOr<TenantPolicy> Core::GetPolicy(absl::string_view name) const {
  ipc::MutexLock lock(&mu_);
  const Tenant* tenant = tenants_.Find(name);
  if (tenant == nullptr) return NoSuchTenant(name);
  return tenant->policy;
}

absl::StatusOr<quota::TenantId> Core::IdOf(absl::string_view name) const {
  ipc::MutexLock lock(&mu_);
  const Tenant* tenant = tenants_.Find(name);
  if (tenant == nullptr) return NoSuchTenant(name);
  return tenant->id;
}

absl::StatusOr<std::string> Core::ResolveDevice(
    absl::string_view device) const {
  ipc::MutexLock lock(&mu_);
  const Pool* pool = FindPool(device);
  if (pool == nullptr) return NoSuchDevice(device);
  return pool->uuid();
}

absl::Status Core::CheckResize(const std::string& device,
                               const quota::Amount& size) const {
  ipc::MutexLock lock(&mu_);
  const Pool* pool = FindPool(device);
  if (pool == nullptr) return NoSuchDevice(device);
  const uint64_t bytes = pool->ResolveSize(size);
  if (!size.IsValid() || bytes == 0 || bytes > pool->worker->baseline_bytes()) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat(
            "a pool is at least one granule and at most the device's free "
            "memory when the broker started: bytes=",
            bytes, " free_bytes=", pool->worker->baseline_bytes()),
        {.field = "size"});
  }
  const quota::PoolSet change{pool->id, bytes, pool->info().granularity_bytes};
  if (std::optional<quota::Refusal> refusal = engine_.Check(change)) {
    return RefusalStatus(*refusal, pool->uuid());
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Change> Core::ResizePool(const std::string& device,
                                            const quota::Amount& size) {
  if (absl::Status checked = CheckResize(device, size); !checked.ok())
    return checked;
  Afterwards after;
  v1::Change change;
  {
    ipc::MutexLock lock(&mu_);
    Pool* pool = FindPool(device);
    const uint64_t bytes = pool->ResolveSize(size);
    Tell(quota::PoolSet{pool->id, bytes, pool->info().granularity_bytes},
         &after);
    v1::Event event = NewEvent("pool_resized", std::nullopt);
    event.set_device(pool->uuid());
    event.set_bytes(bytes);
    deps_.events->Publish(std::move(event));
    AddStanding({.cause = quota::Cause::kPoolShrink, .pool = pool->id});
    // It is applied when the device has the rest back, and not before. What is
    // unreturned or missing is no part of a shrink.
    const Composition held = pool->slabs.composition();
    const quota::PoolView view = *engine_.Pool(pool->id);
    const uint64_t held_bytes = std::max(
        view.capacity_bytes, held.granted_bytes + held.returned_bytes +
                                 held.ready_bytes + held.scrubbing_bytes);
    change.set_device(pool->uuid());
    change.set_remaining_bytes(held_bytes -
                               std::min(held_bytes, view.target_bytes));
    change.set_state(change.remaining_bytes() == 0 ? v1::Change::APPLIED
                                                   : v1::Change::PENDING);
    Maintain(&after);
  }
  after.Run(this);
  return change;
}

absl::StatusOr<uint64_t> Core::DrainPool(const std::string& device,
                                         bool draining) {
  Afterwards after;
  uint64_t leased = 0;
  {
    ipc::MutexLock lock(&mu_);
    Pool* pool = FindPool(device);
    if (pool == nullptr) return NoSuchDevice(device);
    if (!draining && (pool->lost || drain_until_.has_value())) {
      return proto::MakeError(
          v1::BAD_STATE,
          "the device is lost, or the broker is stopping: a restart "
          "of the broker brings it back into service");
    }
    pool->draining = draining;
    Tell(quota::PoolDrain{pool->id, draining}, &after);
    v1::Event event =
        NewEvent(draining ? "pool_draining" : "pool_in_service", std::nullopt);
    event.set_device(pool->uuid());
    deps_.events->Publish(std::move(event));
    AddStanding({.cause = quota::Cause::kPoolDrain, .pool = pool->id});
    leased = engine_.Pool(pool->id)->leased_bytes;
    Maintain(&after);
  }
  after.Run(this);
  return leased;
}

}  // namespace gmb::broker
