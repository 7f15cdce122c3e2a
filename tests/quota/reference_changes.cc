// The reference model's pools and quotas.
#include <algorithm>
#include <limits>

#include "tests/quota/reference_model.h"

namespace gmb::quota {

void ReferenceModel::Settle(PoolId id) {
  ModelPool& pool = pools_.at(id);
  for (auto& [tenant, share] : pool.shares) {
    const uint64_t guarantee = Guarantee(id, tenant);
    share.effective = std::min(share.effective, guarantee);
  }
  // A pending shrink first, as far as it goes.
  const uint64_t needed =
      static_cast<uint64_t>(std::max(Committed(id), ResidentOfAll(id))) +
      pool.missing;
  pool.capacity = std::max(pool.target, std::min(pool.capacity, needed));
  // Held bytes are covered, but for those held against others' promises.
  const int64_t broken = std::max<int64_t>(0, Committed(id) - Usable(id));
  for (auto& [tenant, share] : pool.shares) {
    const uint64_t guarantee = Guarantee(id, tenant);
    const uint64_t held = std::min(guarantee, Hard(id, tenant));
    share.effective = std::max(
        share.effective, held - std::min(held, static_cast<uint64_t>(broken)));
    const auto place =
        std::find(pool.pending_order.begin(), pool.pending_order.end(), tenant);
    if (share.effective < guarantee && place == pool.pending_order.end()) {
      pool.pending_order.push_back(tenant);
    }
  }
  for (const TenantId tenant : pool.pending_order) {
    const auto share = pool.shares.find(tenant);
    if (share == pool.shares.end()) continue;
    const int64_t slack = Usable(id) - Committed(id);
    if (slack <= 0) continue;
    share->second.effective +=
        std::min<uint64_t>(static_cast<uint64_t>(slack),
                           Guarantee(id, tenant) - share->second.effective);
  }
  std::erase_if(pool.pending_order, [&](TenantId tenant) {
    const auto share = pool.shares.find(tenant);
    return share == pool.shares.end() ||
           share->second.effective == Guarantee(id, tenant);
  });
}

void ReferenceModel::DenyImpossible(PoolId pool) {
  const auto doomed = [&](const Wanted& request) {
    return request.bytes.contains(pool) &&
           Impossible(request, pool).has_value();
  };
  for (const Wanted& request : Take(doomed))
    Deny(request, *Impossible(request, pool));
}

void ReferenceModel::On(const PoolSet& event) {
  const auto refuse = [&](Reason reason, uint64_t deficit,
                          TenantId tenant = {}) {
    answers_.push_back(PoolRefused{event.pool, tenant, {reason, deficit}});
  };
  const auto it = pools_.find(event.pool);
  if (event.granularity_bytes == 0 || event.granularity_bytes > kMaxPoolBytes ||
      event.target_bytes > kMaxPoolBytes ||
      (it != pools_.end() &&
       it->second.granularity != event.granularity_bytes)) {
    return refuse(Reason::kBadRequest, 0);
  }
  const uint64_t target =
      event.target_bytes / event.granularity_bytes * event.granularity_bytes;
  if (it != pools_.end()) {
    uint64_t sum = 0;
    for (const auto& [tenant, share] : it->second.shares) {
      const uint64_t g =
          share.quota.guarantee.Resolve(target, event.granularity_bytes);
      const uint64_t l =
          share.quota.limit.Resolve(target, event.granularity_bytes);
      if (g > l) return refuse(Reason::kBadRequest, g - l, tenant);
      sum += g;
    }
    if (sum > target) return refuse(Reason::kOvercommitted, sum - target);
  }
  ModelPool& pool = pools_[event.pool];
  pool.granularity = event.granularity_bytes;
  pool.target = target;
  pool.capacity = std::max(pool.capacity, target);
  Settle(event.pool);
  pool.pending = pool.capacity > target;
  if (pool.pending) {
    answers_.push_back(PoolPending{event.pool, pool.capacity - target});
  } else {
    answers_.push_back(PoolApplied{event.pool});
  }
  DenyImpossible(event.pool);
}

void ReferenceModel::On(const PoolDrain& event) {
  if (!pools_.contains(event.pool)) return;
  pools_[event.pool].draining = event.draining;
  if (!event.draining) return;
  for (const Wanted& request : Take([&](const Wanted& other) {
         return !other.IsRestore() && other.bytes.contains(event.pool);
       })) {
    Deny(request, {Reason::kDraining});
  }
}

void ReferenceModel::On(const MissingChanged& event) {
  if (pools_.contains(event.pool)) {
    ModelPool& pool = pools_[event.pool];
    pool.missing = std::min(event.missing_bytes, kMaxPoolBytes);
    pool.returning = std::min(event.returning_bytes, pool.missing);
  }
}

void ReferenceModel::On(const UnreturnedChanged& event) {
  if (!pools_.contains(event.pool) || !max_handles_.contains(event.tenant))
    return;
  pools_[event.pool].shares[event.tenant].unreturned =
      std::min(event.unreturned_bytes, kMaxPoolBytes);
}

void ReferenceModel::On(const TenantSet& event) {
  max_handles_[event.tenant] = event.max_handles;
}

void ReferenceModel::On(const TenantRemove& event) {
  if (!max_handles_.contains(event.tenant)) {
    answers_.push_back(TenantRefused{event.tenant, {Reason::kNoSuchTenant}});
    return;
  }
  uint64_t held = 0;
  for (const auto& [id, pool] : pools_) held += Charged(id, event.tenant);
  const bool waits = std::any_of(
      waiters_.begin(), waiters_.end(),
      [&](const auto& waiter) { return waiter.wanted.tenant == event.tenant; });
  if (held > 0 || waits) {
    answers_.push_back(TenantRefused{event.tenant, {Reason::kBadState, held}});
    return;
  }
  max_handles_.erase(event.tenant);
  for (auto& [id, pool] : pools_) pool.shares.erase(event.tenant);
  answers_.push_back(TenantRemoved{event.tenant});
}

void ReferenceModel::On(const QuotaSet& event) {
  const auto refuse = [&](Reason reason, uint64_t deficit = 0) {
    answers_.push_back(
        QuotaRefused{event.tenant, event.pool, {reason, deficit}});
  };
  if (!max_handles_.contains(event.tenant))
    return refuse(Reason::kNoSuchTenant);
  if (!pools_.contains(event.pool)) return refuse(Reason::kNoSuchPool);
  const auto valid_fraction = [](const Amount& amount) {
    return !amount.is_fraction() ||
           (amount.fraction() >= 0 && amount.fraction() <= 1);
  };
  const double weight = event.quota.weight;
  if (!valid_fraction(event.quota.guarantee) ||
      !valid_fraction(event.quota.limit) ||
      !(weight > 0 && weight <= std::numeric_limits<double>::max())) {
    return refuse(Reason::kBadRequest);
  }
  ModelPool& pool = pools_[event.pool];
  const uint64_t g =
      event.quota.guarantee.Resolve(pool.target, pool.granularity);
  const uint64_t l = event.quota.limit.Resolve(pool.target, pool.granularity);
  if (g > l) return refuse(Reason::kBadRequest, g - l);
  uint64_t sum = g;
  for (const auto& [tenant, share] : pool.shares) {
    if (tenant != event.tenant) sum += Guarantee(event.pool, tenant);
  }
  if (sum > pool.target)
    return refuse(Reason::kOvercommitted, sum - pool.target);

  if (g > Guarantee(event.pool, event.tenant))
    std::erase(pool.pending_order, event.tenant);
  Share& share = pool.shares[event.tenant];
  share.quota = event.quota;
  Settle(event.pool);
  const uint64_t remaining =
      g - share.effective + OverLimit(event.pool, event.tenant);
  share.pending = remaining > 0;
  if (share.pending) {
    answers_.push_back(QuotaPending{event.tenant, event.pool, remaining});
  } else {
    answers_.push_back(QuotaApplied{event.tenant, event.pool});
  }
  DenyImpossible(event.pool);
}

void ReferenceModel::Announce() {
  for (auto& [id, pool] : pools_) {
    if (pool.pending && pool.capacity == pool.target) {
      pool.pending = false;
      answers_.push_back(PoolApplied{id});
    }
    for (auto& [tenant, share] : pool.shares) {
      const uint64_t remaining =
          Guarantee(id, tenant) - share.effective + OverLimit(id, tenant);
      if (share.pending == (remaining > 0)) continue;
      share.pending = remaining > 0;
      if (share.pending) {
        answers_.push_back(QuotaPending{tenant, id, remaining});
      } else {
        answers_.push_back(QuotaApplied{tenant, id});
      }
    }
  }
}

}  // namespace gmb::quota
