#include "tests/quota/invariants.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmb::quota {

std::string InvariantChecker::Check(const Event& event, Instant now,
                                    const Effects& effects) {
  problem_.clear();
  CheckAnswers(event, effects);
  PutOff(event, now);
  Follow(event, effects);
  CheckWaiters(now);
  const bool from_outside = std::holds_alternative<MissingChanged>(event) ||
                            std::holds_alternative<UnreturnedChanged>(event) ||
                            std::holds_alternative<HardChanged>(event);
  for (const PoolId pool : engine_.Pools()) CheckPool(pool, from_outside);
  CheckTotals();
  // The limit held when the grant was made, unless what expired made room
  // before the event lowered the limit.
  const bool lowers = std::holds_alternative<QuotaSet>(event) ||
                      std::holds_alternative<PoolSet>(event) ||
                      std::holds_alternative<UnreturnedChanged>(event);
  if (lowers) return problem_;
  for (const Effect& effect : effects) {
    const auto* granted = std::get_if<Granted>(&effect);
    if (granted == nullptr) continue;
    const auto view = engine_.TenantPool(granted->tenant, granted->pool);
    Expect(view->leased_bytes + view->unreturned_bytes <= view->limit_bytes,
           "a grant exceeds the limit");
  }
  return problem_;
}

void InvariantChecker::CheckAnswers(const Event& event,
                                    const Effects& effects) {
  RequestId request;
  if (const auto* acquire = std::get_if<Acquire>(&event)) {
    request = acquire->request;
  } else if (const auto* restore = std::get_if<Restore>(&event)) {
    request = restore->request;
  } else {
    return;
  }
  if (waiting_.contains(request)) return;
  int answers = 0;
  for (const Effect& effect : effects) {
    const auto* granted = std::get_if<Granted>(&effect);
    const auto* denied = std::get_if<Denied>(&effect);
    const auto* waiting = std::get_if<Waiting>(&effect);
    const auto* restored = std::get_if<Restored>(&effect);
    answers += granted != nullptr && granted->request == request;
    answers += denied != nullptr && denied->request == request;
    answers += waiting != nullptr && waiting->request == request;
    answers += restored != nullptr && restored->request == request;
  }
  Expect(answers == 1, absl::StrCat("a request has ", answers, " answers"));
}

void InvariantChecker::FollowEvent(const Event& event) {
  joins_ = {};
  const auto end = [&](LeaseId lease) {
    leases_.erase(lease);
    evicted_.erase(lease);
    hard_.erase(lease);
  };
  if (const auto* released = std::get_if<Released>(&event))
    end(released->lease);
  if (const auto* failed = std::get_if<GrantFailed>(&event)) end(failed->lease);
  if (const auto* evicted = std::get_if<Evicted>(&event)) {
    if (!leases_.contains(evicted->lease)) return;
    if (evicted_.insert(evicted->lease).second) joins_ = evicted->lease;
    hard_.erase(evicted->lease);
  }
  if (const auto* shared = std::get_if<Shared>(&event)) {
    const auto lease = leases_.find(shared->lease);
    if (lease != leases_.end()) lease->second.session = {};
  }
  const auto* changed = std::get_if<HardChanged>(&event);
  if (changed == nullptr || !leases_.contains(changed->lease) ||
      evicted_.contains(changed->lease)) {
    return;
  }
  hard_.erase(changed->lease);
  if (changed->hard) hard_.insert(changed->lease);
}

uint64_t InvariantChecker::BytesIn(const Waiter& waiter, PoolId pool) const {
  if (waiter.leases.empty()) {
    if (waiter.pool != pool) return 0;
    const uint64_t granularity = engine_.Pool(pool)->granularity_bytes;
    return (waiter.bytes + granularity - 1) / granularity * granularity;
  }
  uint64_t bytes = 0;
  for (const LeaseId id : waiter.leases) {
    const auto lease = leases_.find(id);
    if (lease != leases_.end() && lease->second.pool == pool)
      bytes += lease->second.bytes;
  }
  return bytes;
}

void InvariantChecker::Follow(const Event& event, const Effects& effects) {
  FollowEvent(event);
  std::optional<std::pair<RequestId, Waiter>> arrived;
  if (const auto* acquire = std::get_if<Acquire>(&event)) {
    arrived = {acquire->request,
               {acquire->tenant,
                acquire->deadline,
                acquire->pool,
                acquire->bytes,
                {},
                0,
                Nanoseconds(0)}};
  }
  if (const auto* restore = std::get_if<Restore>(&event)) {
    Waiter waiter{{}, restore->deadline, {}, 0, {}, 0, restore->linger};
    for (const LeaseId id : restore->leases) {
      if (!evicted_.contains(id)) continue;
      waiter.leases.push_back(id);
      waiter.tenant = leases_.at(id).tenant;
    }
    std::sort(waiter.leases.begin(), waiter.leases.end());
    waiter.leases.erase(std::unique(waiter.leases.begin(), waiter.leases.end()),
                        waiter.leases.end());
    arrived = {restore->request, waiter};
  }
  const auto known = [&](RequestId request) {
    return waiting_.contains(request) || (arrived && arrived->first == request);
  };
  // A lease that leaves the device joins its session's oldest Restore, if that
  // has not been served when another request expired.
  Waiter* oldest = nullptr;
  for (auto& [request, waiting] : waiting_) {
    Waiter& waiter = waiting;  // clang 14 captures no structured binding
    const bool same = std::any_of(
        waiter.leases.begin(), waiter.leases.end(), [&](LeaseId id) {
          return joins_ != LeaseId{} && leases_.contains(id) &&
                 leases_.at(joins_).session != SessionId{} &&
                 leases_.at(joins_).tenant == waiter.tenant &&
                 leases_.at(id).session == leases_.at(joins_).session;
        });
    if (same && (oldest == nullptr || waiter.arrival < oldest->arrival)) {
      oldest = &waiter;
    }
  }
  if (oldest != nullptr) oldest->leases.push_back(joins_);
  for (const Effect& effect : effects) {
    if (const auto* granted = std::get_if<Granted>(&effect)) {
      Expect(known(granted->request), "a grant without a request");
      Expect(seen_leases_.insert(granted->lease).second,
             "a lease id was used twice");
      leases_.emplace(granted->lease, *granted);
      if (engine_.Lease(granted->lease)->hard) hard_.insert(granted->lease);
      waiting_.erase(granted->request);
    } else if (const auto* restored = std::get_if<Restored>(&effect)) {
      Expect(known(restored->request), "a Restored without a request");
      const auto waited = waiting_.find(restored->request);
      const Waiter& waiter =
          waited != waiting_.end() ? waited->second : arrived->second;
      uint64_t bytes = 0;
      if (restored->in_part) {
        Expect(waited != waiting_.end(), "in part, and it did not wait");
        for (const LeaseId id : restored->leases) {
          Expect(evicted_.erase(id) == 1, "a resident lease was restored");
          bytes += leases_.at(id).bytes;
          Expect(std::erase(waited->second.leases, id) == 1,
                 "a lease that nobody asked for was restored");
        }
        Expect(bytes == restored->bytes, "not what it says came back");
        continue;
      }
      for (const LeaseId id : waiter.leases) {
        if (!leases_.contains(id)) continue;
        Expect(evicted_.erase(id) == 1, "a resident lease was restored");
        bytes += leases_.at(id).bytes;
      }
      Expect(bytes == restored->bytes, "not all of a Restore came back");
      waiting_.erase(restored->request);
    } else if (const auto* denied = std::get_if<Denied>(&effect)) {
      Expect(known(denied->request), "a denial without a request");
      waiting_.erase(denied->request);
    } else if (const auto* waiting = std::get_if<Waiting>(&effect)) {
      Expect(arrived && arrived->first == waiting->request,
             "Waiting for no new request");
      if (arrived) {
        arrived->second.arrival = ++last_arrival_;
        waiting_.insert(*arrived);
      }
    } else if (const auto* quota = std::get_if<QuotaPending>(&effect)) {
      pending_quotas_.insert({quota->pool, quota->tenant});
    } else if (const auto* applied = std::get_if<QuotaApplied>(&effect)) {
      pending_quotas_.erase({applied->pool, applied->tenant});
    } else if (const auto* pool = std::get_if<PoolPending>(&effect)) {
      pending_pools_.insert(pool->pool);
    } else if (const auto* done = std::get_if<PoolApplied>(&effect)) {
      pending_pools_.erase(done->pool);
    } else if (const auto* removed = std::get_if<TenantRemoved>(&effect)) {
      std::erase_if(pending_quotas_, [&](const TenantPoolKey& key) {
        return key.second == removed->tenant;
      });
    }
  }
}

void InvariantChecker::PutOff(const Event& event, Instant now) {
  for (auto& [request, waiter] : waiting_) {
    if (waiter.deadline <= now && waiter.linger > Nanoseconds(0))
      waiter.deadline = now + std::exchange(waiter.linger, Nanoseconds(0));
  }
  const auto* again = std::get_if<Restore>(&event);
  if (again == nullptr || !waiting_.contains(again->request)) return;
  Waiter& waiter = waiting_.at(again->request);
  if (waiter.leases.empty()) return;  // an Acquire
  waiter.deadline = std::max(waiter.deadline, again->deadline);
  waiter.linger = std::max(waiter.linger, again->linger);
}

void InvariantChecker::CheckWaiters(Instant now) {
  std::optional<Instant> first;
  for (const auto& [request, waiter] : waiting_) {
    Expect(engine_.IsWaiting(request), "a waiting request was lost");
    Expect(waiter.deadline > now, "a request waits past its deadline");
    if (!first || waiter.deadline < *first) first = waiter.deadline;
  }
  // The reference model knows when claims turn.
  const std::optional<Instant> next = engine_.NextDeadline();
  Expect(next.has_value() == first.has_value(), "NextDeadline without a wait");
  Expect(!next || (*next > now && *next <= *first),
         "NextDeadline is over, or after a deadline");
  Expect(engine_.waiting() == waiting_.size(),
         "the number of waiting requests is wrong");
}

void InvariantChecker::CheckPool(PoolId id, bool from_outside) {
  const PoolView pool = *engine_.Pool(id);
  PoolView sum;
  for (const TenantId tenant : engine_.Tenants()) {
    const TenantPoolView view = *engine_.TenantPool(tenant, id);
    sum.leased_bytes += view.leased_bytes;
    sum.unreturned_bytes += view.unreturned_bytes;
    sum.guaranteed_bytes += view.requested_guarantee_bytes;
    sum.evicted_bytes += view.evicted_bytes;
    sum.charged_bytes += view.resident_bytes;
    sum.hard_bytes += view.hard_bytes;
    sum.committed_bytes +=
        std::max(view.effective_guarantee_bytes, view.hard_bytes);
    sum.waiting += view.waiting;
    sum.waiting_bytes += view.waiting_bytes;
    sum.leases += view.leases;
    sum.handles += view.handles;
    CheckTenantPool(id, tenant, pool);
  }
  Expect(pool.leased_bytes == sum.leased_bytes, "leased_bytes");
  Expect(pool.unreturned_bytes == sum.unreturned_bytes, "unreturned_bytes");
  Expect(pool.guaranteed_bytes == sum.guaranteed_bytes, "guaranteed_bytes");
  Expect(pool.committed_bytes == sum.committed_bytes, "committed_bytes");
  Expect(pool.evicted_bytes == sum.evicted_bytes, "evicted_bytes");
  Expect(pool.charged_bytes == sum.charged_bytes, "charged_bytes");
  Expect(pool.hard_bytes == sum.hard_bytes, "hard_bytes");
  Expect(pool.waiting == sum.waiting, "waiting");
  Expect(pool.waiting_bytes == sum.waiting_bytes, "waiting_bytes");
  Expect(pool.leases == sum.leases, "leases");
  Expect(pool.handles == sum.handles, "handles");
  for (const auto& [request, waiter] : waiting_) {
    const bool acquires = waiter.leases.empty() && waiter.pool == id;
    Expect(!pool.draining || !acquires, "a draining pool has a queue");
  }

  Expect(pool.guaranteed_bytes <= pool.target_bytes,
         "the guarantees exceed the pool");
  Expect(pool.capacity_bytes >= pool.target_bytes,
         "the capacity is below the target");
  const uint64_t used = pool.committed_bytes + pool.missing_bytes;
  const uint64_t broken =
      used > pool.capacity_bytes ? used - pool.capacity_bytes : 0;
  const uint64_t slack =
      used < pool.capacity_bytes ? pool.capacity_bytes - used : 0;
  Expect(pool.broken_bytes == broken, "broken_bytes");
  Expect(pool.free_to_borrow_bytes == slack, "free_to_borrow_bytes");
  // Sum of max(guarantee, hard) <= C - missing; only what comes from outside
  // may break it.
  Expect(from_outside || broken <= broken_bytes_[id],
         "the sum of guarantees and hard bytes broke");
  broken_bytes_[id] = broken;
  // Resident bytes fit; only a change from outside may break that.
  const int64_t overdrawn =
      static_cast<int64_t>(pool.charged_bytes + pool.missing_bytes) -
      static_cast<int64_t>(pool.capacity_bytes);
  Expect(
      from_outside || overdrawn <= std::max<int64_t>(overdrawn_bytes_[id], 0),
      "more is resident than there is");
  overdrawn_bytes_[id] = overdrawn;
  Expect(pool.capacity_bytes == pool.target_bytes ||
             pool.capacity_bytes ==
                 std::max(pool.committed_bytes, pool.charged_bytes) +
                     pool.missing_bytes ||
             from_outside || overdrawn > 0 || broken > 0,
         "a shrink does not go as far as it could");
  Expect(
      pending_pools_.contains(id) == (pool.capacity_bytes > pool.target_bytes),
      "the pool's PENDING was not told");
}

void InvariantChecker::CheckTenantPool(PoolId id, TenantId tenant,
                                       const PoolView& pool) {
  const TenantPoolView view = *engine_.TenantPool(tenant, id);
  uint64_t leased = 0, handles = 0, leases = 0, evicted = 0, hard_leased = 0;
  for (const auto& [lease, granted] : leases_) {
    if (granted.pool != id || granted.tenant != tenant) continue;
    leased += granted.bytes;
    if (evicted_.contains(lease)) evicted += granted.bytes;
    if (hard_.contains(lease)) hard_leased += granted.bytes;
    Expect(engine_.Lease(lease)->evicted == evicted_.contains(lease),
           "a lease's place");
    handles += granted.handles;
    ++leases;
  }
  Expect(view.leased_bytes == leased, "a tenant's leased_bytes");
  Expect(view.handles == handles, "a tenant's handles");
  Expect(view.leases == leases, "a tenant's leases");
  Expect(view.evicted_bytes == evicted, "a tenant's evicted_bytes");
  const uint64_t hard = hard_leased + view.unreturned_bytes;
  const uint64_t resident = leased - evicted + view.unreturned_bytes;
  Expect(view.hard_bytes == hard, "a tenant's hard_bytes");
  Expect(view.resident_bytes == resident, "a tenant's resident_bytes");
  Expect(view.effective_guarantee_bytes <= view.requested_guarantee_bytes,
         "more guarantee in force than asked for");
  // But for what is held against the promises to others.
  const uint64_t held = std::min(view.requested_guarantee_bytes, hard);
  Expect(view.effective_guarantee_bytes >=
             held - std::min(held, pool.broken_bytes),
         "a guarantee does not cover what is held");
  Expect(view.effective_guarantee_bytes == view.requested_guarantee_bytes ||
             pool.free_to_borrow_bytes == 0,
         "bytes can be borrowed while a guarantee is pending");
  Expect(view.requested_guarantee_bytes <= view.limit_bytes,
         "guarantee above limit");
  const bool pending =
      view.effective_guarantee_bytes < view.requested_guarantee_bytes ||
      view.over_limit_bytes > 0;
  Expect(pending_quotas_.contains({id, tenant}) == pending,
         "the quota's PENDING was not told");

  uint64_t waiting = 0;
  const std::vector<PoolId> pools = engine_.Pools();
  const int64_t free =
      static_cast<int64_t>(pool.capacity_bytes) -
      static_cast<int64_t>(pool.missing_bytes + pool.charged_bytes);
  for (const auto& [request, waiter] : waiting_) {
    const uint64_t bytes = BytesIn(waiter, id);
    if (waiter.tenant != tenant || bytes == 0) continue;
    ++waiting;
    if (resident + bytes > view.effective_guarantee_bytes) continue;
    const bool limited =
        waiter.leases.empty() &&
        leased + view.unreturned_bytes + bytes > view.limit_bytes;
    uint64_t everywhere = 0;
    for (const PoolId other : pools) everywhere += BytesIn(waiter, other);
    const bool elsewhere = bytes < everywhere;
    if (limited || elsewhere) continue;
    Expect(static_cast<int64_t>(bytes) > free,
           "a request within the guarantee waits for nothing");
    // Reclaim can help, unless the device itself is short.
    uint64_t soft = 0;
    for (const auto& [lease, granted] : leases_) {
      if (granted.pool == id && !evicted_.contains(lease) &&
          !hard_.contains(lease)) {
        soft += granted.bytes;
      }
    }
    Expect(pool.broken_bytes > 0 ||
               static_cast<int64_t>(bytes) <= free + static_cast<int64_t>(soft),
           "a request within the guarantee waits for hard bytes");
  }
  Expect(view.waiting == waiting, "a tenant's waiting");
}

void InvariantChecker::CheckTotals() {
  Expect(engine_.leases() == leases_.size(), "the number of leases is wrong");
  uint64_t handles = 0;
  for (const auto& [id, granted] : leases_) {
    handles += granted.handles;
    Expect(engine_.Lease(id).has_value(), "a lease was lost");
  }
  Expect(engine_.handles() == handles, "the number of handles is wrong");
  for (const TenantId tenant : engine_.Tenants()) {
    uint64_t own = 0;
    for (const auto& [id, granted] : leases_) {
      if (granted.tenant == tenant) own += granted.handles;
    }
    Expect(engine_.Tenant(tenant)->handles == own,
           "a tenant's handles over all pools");
  }
}

std::string InvariantChecker::CheckDrained() const {
  std::string problem;
  const auto expect = [&](bool condition, const char* text) {
    if (!condition && problem.empty())
      problem = absl::StrCat("drained: ", text);
  };
  expect(engine_.leases() == 0, "leases");
  expect(engine_.handles() == 0, "handles");
  expect(engine_.waiting() == 0, "waiting");
  expect(!engine_.NextDeadline(), "deadlines");
  expect(pending_quotas_.empty(), "a quota is pending");
  expect(pending_pools_.empty(), "a pool is pending");
  for (const PoolId id : engine_.Pools()) {
    const PoolView pool = *engine_.Pool(id);
    expect(pool.charged_bytes == 0, "charged bytes");
    expect(pool.capacity_bytes == pool.target_bytes, "capacity");
    expect(pool.committed_bytes == pool.guaranteed_bytes,
           "a guarantee is not in force");
    expect(
        pool.free_to_borrow_bytes == pool.target_bytes - pool.guaranteed_bytes,
        "slack");
  }
  return problem;
}

void InvariantChecker::Expect(bool condition, const std::string& text) {
  if (!condition && problem_.empty()) problem_ = text;
}

}  // namespace gmb::quota
