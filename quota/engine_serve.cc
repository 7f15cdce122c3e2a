// Serving those who wait, after the books of a pool have changed.
#include <algorithm>
#include <utility>

#include "quota/engine_state.h"

namespace gmb::quota {

void Engine::State::Settle(PoolId id, PoolState& pool, Effects& effects) {
  pool.ledger.Settle();
  Publish(id, pool, effects);
  ServeAll({id}, effects);
}

void Engine::State::SettleAll(std::vector<PoolId> ids, Effects& effects) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const PoolId id : ids) {
    PoolState& pool = *FindPool(id);
    pool.ledger.Settle();
    Publish(id, pool, effects);
  }
  ServeAll(std::move(ids), effects);
}

void Engine::State::AddLinked(std::vector<PoolId>& ids) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    for (const auto& [place, request] : FindPool(ids[i])->linked) {
      for (const Part& part : waiters.at(request).asked.parts) {
        if (std::find(ids.begin(), ids.end(), part.pool) == ids.end()) {
          ids.push_back(part.pool);
        }
      }
    }
  }
  std::sort(ids.begin(), ids.end());
}

void Engine::State::ServeAll(std::vector<PoolId> ids, Effects& effects) {
  AddLinked(ids);
  bool served = !ids.empty();
  while (served) {
    served = false;
    for (const PoolId id : ids) {
      served = Serve(id, *FindPool(id), effects) || served;
    }
    // One pool by itself has been served to the end.
    if (ids.size() == 1) return;
  }
}

void Engine::State::Publish(PoolId id, PoolState& pool, Effects& effects) {
  if (pool.shrink_pending &&
      pool.ledger.capacity_bytes() == pool.ledger.target_bytes()) {
    pool.shrink_pending = false;
    effects.push_back(PoolApplied{.pool = id});
  }
  for (Account* account : pool.ledger.TakeTouched()) {
    pool.queue.Update(account->tenant, StandingOf(*account));
    const uint64_t remaining_bytes = account->PendingBytes();
    if (account->quota_pending != (remaining_bytes > 0)) {
      account->quota_pending = remaining_bytes > 0;
      if (account->quota_pending) {
        effects.push_back(QuotaPending{account->tenant, id, remaining_bytes});
      } else {
        effects.push_back(QuotaApplied{account->tenant, id});
      }
    }
    if (std::exchange(account->budget_changed, false)) {
      effects.push_back(BudgetChanged{.tenant = account->tenant, .pool = id});
    }
  }
}

bool Engine::State::FitsElsewhere(const Request& request, PoolId except) const {
  return std::all_of(
      request.parts.begin(), request.parts.end(), [&](const Part& part) {
        if (part.pool == except) return true;
        const PoolState& pool = *FindPool(part.pool);
        return FitsNow(pool, *pool.ledger.Find(request.tenant), part.ask);
      });
}

void Engine::State::MarkLackingElsewhere(PoolId id, PoolState& pool) {
  for (const auto& [place, request] : pool.linked) {
    const Request& asked = waiters.at(request).asked;
    pool.queue.SetLackingElsewhere(asked.tenant, place,
                                   !FitsElsewhere(asked, id));
  }
}

bool Engine::State::Serve(PoolId id, PoolState& pool, Effects& effects) {
  bool served = false;
  MarkLackingElsewhere(id, pool);
  while (pool.queue.waiting() > 0) {
    auto next = pool.queue.NextWithinGuarantee(pool.ledger.FreeBytes());
    const bool lends = !pool.queue.AnyWithinGuarantee() &&
                       !pool.ledger.IsShrinking() &&
                       pool.ledger.SlackBytes() >= 0;
    if (!next && lends) {
      // A sum that is not broken may still have fewer bytes than are leased:
      // missing ones that soft leases stand for.
      const int64_t free_bytes = std::max<int64_t>(pool.ledger.FreeBytes(), 0);
      next = pool.queue.NextBorrowing(
          static_cast<uint64_t>(free_bytes),
          static_cast<uint64_t>(pool.ledger.SlackBytes()), now,
          options.pass_window);
    }
    if (!next) return served;
    served = true;
    const Request request = Dequeue(*next).asked;
    if (!request.IsRestore() &&
        !HandlesFit(tenants.at(request.tenant), request.handles)) {
      effects.push_back(Denied{.request = request.request,
                               .session = request.session,
                               .reason = Reason::kTooManyHandles,
                               .retry_after = options.pass_window});
      continue;
    }
    Carry(request, effects);
    for (const Part& part : request.parts) {
      Publish(part.pool, *FindPool(part.pool), effects);
    }
    if (request.parts.size() > 1) MarkLackingElsewhere(id, pool);
  }
  return served;
}

}  // namespace gmb::quota
