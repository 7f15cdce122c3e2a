#include "broker/core/core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/wire_form.h"

namespace gmb::broker {

Core::Core(const CoreOptions& options, const Deps& deps)
    : options_(options),
      deps_(deps),
      started_(deps.clock->WallTime()),
      engine_(quota::EngineOptions{.max_handles = options.max_handles}),
      host_books_(deps.host_pool == nullptr ? 0 : deps.host_pool->size_bytes()),
      backing_budget_(options.backing) {}

// The workers' threads call back into the core: they are joined while all of
// it is still there, and outside the lock.
Core::~Core() {
  std::map<quota::PoolId, std::unique_ptr<Pool>> pools;
  {
    ipc::MutexLock lock(&mu_);
    pools.swap(pools_);
  }
  // A worker of one pool may be pushing into another's, or into a copier.
  for (auto& [id, pool] : pools) {
    pool->worker->Stop();
    if (pool->copier != nullptr) pool->copier->Stop();
  }
}

absl::Status Core::AddPool(PoolOptions options) {
  Afterwards after;
  DeviceWorker* worker = options.worker.get();
  quota::PoolId id;
  {
    ipc::MutexLock lock(&mu_);
    if (FindPool(worker->info().uuid) != nullptr) {
      return absl::AlreadyExistsError(
          absl::StrCat("the device is given twice: name each device once: ",
                       worker->info().uuid));
    }
    const quota::PoolSet set{quota::PoolId{next_pool_}, options.target_bytes,
                             worker->info().granularity_bytes};
    if (options.target_bytes > worker->baseline_bytes()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the pool is larger than the device's free memory: lower --pool, "
          "raise --headroom, or "
          "free the device: device=",
          worker->info().uuid, " pool_bytes=", options.target_bytes,
          " free_bytes=", worker->baseline_bytes()));
    }
    if (engine_.Check(set).has_value() ||
        options.target_bytes < set.granularity_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a pool is at least one granule and at most 64 TiB: pool_bytes=",
          options.target_bytes, " granularity_bytes=", set.granularity_bytes));
    }
    id = set.pool;
    ++next_pool_;
    auto pool =
        std::make_unique<Pool>(id, std::move(options.worker),
                               std::move(options.copier), options.slabs);
    pool->share_of_bytes = options.share_of_bytes;
    pool->reading.baseline_bytes = worker->baseline_bytes();
    pool->reading.free_bytes = worker->baseline_bytes();
    pools_.emplace(id, std::move(pool));
    Tell(set, &after);
    for (const auto& [tenant_id, tenant] : tenants_) {
      Tell(quota::QuotaSet{id, tenant_id,
                           tenant.policy.QuotaOn(worker->info().uuid)},
           &after);
    }
  }
  worker->Start([this, id](DeviceResult result) {
    OnDeviceResult(id, std::move(result));
  });
  {
    ipc::MutexLock lock(&mu_);
    Maintain(&after);
  }
  after.Run(this);
  return absl::OkStatus();
}

void Core::SetWakeTicker(std::function<void()> wake) {
  wake_ticker_ = std::move(wake);
}

void Core::Tell(const quota::Event& event, Afterwards* after) {
  const quota::Effects effects = engine_.Handle(event, deps_.clock->Now());
  // What is granted now is planned with the capacity of now.
  SyncCapacities();
  Apply(effects, after);
}

void Core::Apply(const quota::Effects& effects, Afterwards* after) {
  for (const quota::Effect& effect : effects) {
    if (const auto* granted = std::get_if<quota::Granted>(&effect)) {
      OnGranted(*granted, after);
    } else if (const auto* denied = std::get_if<quota::Denied>(&effect)) {
      OnDenied(*denied, after);
    } else if (const auto* waiting = std::get_if<quota::Waiting>(&effect)) {
      OnWaiting(*waiting, after);
    } else if (const auto* restored = std::get_if<quota::Restored>(&effect)) {
      OnRestored(*restored, after);
    } else if (const auto* changed =
                   std::get_if<quota::BudgetChanged>(&effect)) {
      OnBudgetChanged(*changed, after);
    } else if (const auto* applied =
                   std::get_if<quota::QuotaApplied>(&effect)) {
      v1::Event event = NewEvent("quota_applied", applied->tenant);
      event.set_device(pools_.at(applied->pool)->uuid());
      deps_.events->Publish(std::move(event));
      OnQuotaApplied(*applied, effects, after);
    } else if (const auto* pending =
                   std::get_if<quota::QuotaPending>(&effect)) {
      v1::Event event = NewEvent("quota_pending", pending->tenant);
      event.set_device(pools_.at(pending->pool)->uuid());
      event.set_bytes(pending->remaining_bytes);
      deps_.events->Publish(std::move(event));
    }
  }
}

// A change that was pending has taken effect: the sessions are told, unless
// they are told of this very change anyway.
void Core::OnQuotaApplied(const quota::QuotaApplied& applied,
                          const quota::Effects& effects, Afterwards* after) {
  const bool told = std::any_of(
      effects.begin(), effects.end(), [&](const quota::Effect& effect) {
        const auto* changed = std::get_if<quota::BudgetChanged>(&effect);
        return changed != nullptr && changed->tenant == applied.tenant &&
               changed->pool == applied.pool;
      });
  if (!told) OnBudgetChanged({applied.tenant, applied.pool}, after);
}

v1::Event Core::NewEvent(absl::string_view kind,
                         std::optional<quota::TenantId> tenant) const {
  v1::Event event;
  *event.mutable_at() = ToProto(deps_.clock->WallTime());
  event.set_kind(std::string(kind));
  if (tenant.has_value()) {
    if (const Tenant* known = tenants_.Find(*tenant))
      event.set_tenant(known->policy.name);
  }
  return event;
}

quota::Instant Core::Tick() {
  Afterwards after;
  quota::Instant due;
  {
    ipc::MutexLock lock(&mu_);
    ticker_due_ = quota::Instant::Max();
    Tell(quota::Tick{}, &after);
    Maintain(&after);
    due = NextDue();
    ticker_due_ = due;
  }
  after.wake_ticker = false;  // it is the ticker that called
  after.Run(this);
  return due;
}

// One step at a time, and none beside a lease being made: the device's one
// worker is never busy for long when a request comes. Nor while bytes come back
// piece by piece for a request: they are its.
bool Core::MayRefill(const Pool& pool) const {
  return pool.jobs == 0 && IncomingBytes(pool.id, {}, false) == 0;
}

quota::Instant Core::NextDue() const {
  quota::Instant due = engine_.NextDeadline().value_or(quota::Instant::Max());
  due = std::min(due, ReclaimDue());
  for (const auto& [id, pool] : pools_) {
    if (pool->lost) continue;
    due = std::min(due, pool->next_audit);
    // What stands in the way of a refill looks again when it is over.
    const auto expiry = pool->slabs.NextExpiry();
    if (expiry.has_value() && MayRefill(*pool))
      due = std::min(due, std::max(*expiry, pool->refill_after));
  }
  return due;
}

void Core::BeginDrain(absl::Duration deadline) {
  Afterwards after;
  {
    ipc::MutexLock lock(&mu_);
    if (drain_until_.has_value()) return;
    drain_until_ = deps_.clock->WallTime() + deadline;
    v1::Event event = NewEvent("draining", std::nullopt);
    event.set_message(
        "no new grants; sessions are asked to release what they hold");
    deps_.events->Publish(std::move(event));
    for (const auto& [id, pool] : pools_)
      Tell(quota::PoolDrain{id, true}, &after);
    for (const auto& [id, session] : sessions_) {
      if (!session->tenant.has_value()) continue;
      v1::BrokerMessage message;
      message.mutable_draining()->mutable_remaining()->set_seconds(
          absl::ToInt64Seconds(deadline));
      Say(session.get(), std::move(message), &after);
    }
  }
  after.Run(this);
}

uint64_t Core::TenantSessions() const {
  ipc::MutexLock lock(&mu_);
  return static_cast<uint64_t>(std::count_if(
      sessions_.begin(), sessions_.end(),
      [](const auto& entry) { return entry.second->tenant.has_value(); }));
}

}  // namespace gmb::broker
