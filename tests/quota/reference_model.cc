#include "tests/quota/reference_model.h"

#include <algorithm>
#include <tuple>

namespace gmb::quota {

Effects ReferenceModel::Handle(const Event& event, Instant now) {
  requests_.clear();
  answers_.clear();
  now_ = std::max(now_, now);
  LearnFirstHolds();
  Expire();
  std::visit([&](const auto& e) { On(e); }, event);
  for (const auto& [pool, unused] : pools_) Settle(pool);
  ServeAll();
  Announce();
  Effects all = requests_;
  all.insert(all.end(), answers_.begin(), answers_.end());
  return all;
}

uint64_t ReferenceModel::Unreturned(PoolId pool, TenantId tenant) const {
  const auto& shares = pools_.at(pool).shares;
  const auto it = shares.find(tenant);
  return it == shares.end() ? 0 : it->second.unreturned;
}

uint64_t ReferenceModel::Charged(PoolId pool, TenantId tenant) const {
  uint64_t sum = Unreturned(pool, tenant);
  for (const auto& [id, lease] : leases_) {
    if (lease.pool == pool && lease.tenant == tenant) sum += lease.bytes;
  }
  return sum;
}

uint64_t ReferenceModel::Resident(PoolId pool, TenantId tenant) const {
  uint64_t sum = Unreturned(pool, tenant);
  for (const auto& [id, lease] : leases_) {
    if (lease.pool != pool || lease.tenant != tenant) continue;
    if (!lease.evicted) sum += lease.bytes;
  }
  return sum;
}

uint64_t ReferenceModel::Hard(PoolId pool, TenantId tenant) const {
  uint64_t sum = Unreturned(pool, tenant);
  for (const auto& [id, lease] : leases_) {
    if (lease.pool != pool || lease.tenant != tenant) continue;
    if (!lease.evicted && lease.hard) sum += lease.bytes;
  }
  return sum;
}

uint64_t ReferenceModel::OverLimit(PoolId pool, TenantId tenant) const {
  const uint64_t on_device = Resident(pool, tenant) - Unreturned(pool, tenant);
  const uint64_t limit = Limit(pool, tenant);
  return on_device > limit ? on_device - limit : 0;
}

int64_t ReferenceModel::ResidentOfAll(PoolId pool) const {
  int64_t sum = 0;
  for (const auto& [tenant, share] : pools_.at(pool).shares) {
    sum += static_cast<int64_t>(Resident(pool, tenant));
  }
  return sum;
}

uint64_t ReferenceModel::Guarantee(PoolId id, TenantId tenant) const {
  const ModelPool& pool = pools_.at(id);
  const auto it = pool.shares.find(tenant);
  if (it == pool.shares.end()) return 0;
  return it->second.quota.guarantee.Resolve(pool.target, pool.granularity);
}

uint64_t ReferenceModel::Limit(PoolId id, TenantId tenant) const {
  const ModelPool& pool = pools_.at(id);
  const auto it = pool.shares.find(tenant);
  if (it == pool.shares.end()) return 0;
  return it->second.quota.limit.Resolve(pool.target, pool.granularity);
}

int64_t ReferenceModel::Committed(PoolId id, TenantId extra_tenant,
                                  uint64_t extra) const {
  int64_t sum = 0;
  for (const auto& [tenant, share] : pools_.at(id).shares) {
    const uint64_t hard =
        Hard(id, tenant) + (tenant == extra_tenant ? extra : 0);
    sum += static_cast<int64_t>(std::max(share.effective, hard));
  }
  return sum;
}

int64_t ReferenceModel::Usable(PoolId id) const {
  const ModelPool& pool = pools_.at(id);
  return static_cast<int64_t>(pool.capacity) -
         static_cast<int64_t>(pool.missing);
}

bool ReferenceModel::WithinGuarantee(const Wanted& request, PoolId pool) const {
  const Share& share = pools_.at(pool).shares.at(request.tenant);
  return Resident(pool, request.tenant) + request.bytes.at(pool) <=
         share.effective;
}

bool ReferenceModel::WithinGuarantee(const Wanted& request) const {
  return std::all_of(
      request.bytes.begin(), request.bytes.end(),
      [&](const auto& part) { return WithinGuarantee(request, part.first); });
}

uint64_t ReferenceModel::HeldBack(const Wanted& request, PoolId pool) const {
  const uint64_t used = request.IsRestore() ? Resident(pool, request.tenant)
                                            : Charged(pool, request.tenant);
  const uint64_t limit = Limit(pool, request.tenant);
  const uint64_t left = limit > used ? limit - used : 0;
  const uint64_t bytes = request.bytes.at(pool);
  return bytes > left ? bytes - left : 0;
}

int64_t ReferenceModel::Free(PoolId pool) const {
  return Usable(pool) - ResidentOfAll(pool);
}

int64_t ReferenceModel::Lacking(const Wanted& request, PoolId pool) const {
  const uint64_t bytes = request.bytes.at(pool);
  const int64_t room = static_cast<int64_t>(bytes) - Free(pool);
  if (WithinGuarantee(request, pool)) return room;
  const int64_t sum =
      Committed(pool, request.tenant, request.hard ? bytes : 0) - Usable(pool);
  const bool shrinking = pools_.at(pool).capacity > pools_.at(pool).target;
  return std::max({room, sum, int64_t{shrinking}});
}

bool ReferenceModel::Fits(const Wanted& request, PoolId turn) const {
  return std::all_of(
      request.bytes.begin(), request.bytes.end(), [&](const auto& part) {
        const PoolId pool = part.first;
        if (HeldBack(request, pool) > 0 || Lacking(request, pool) > 0)
          return false;
        return WithinGuarantee(request, pool) ||
               LackingBeside(request, pool, pool != turn) <= 0;
      });
}

double ReferenceModel::Priority(PoolId id, TenantId tenant) const {
  const uint64_t held = Resident(id, tenant);
  const uint64_t guarantee = Guarantee(id, tenant);
  uint64_t back = 0;
  for (const ModelWaiter& waiter : waiters_) {
    const Wanted& wanted = waiter.wanted;
    if (wanted.tenant != tenant || !wanted.bytes.contains(id)) continue;
    for (const LeaseId lease : wanted.back)
      back += leases_.contains(lease) ? leases_.at(lease).bytes : 0;
  }
  const double borrowed = held > guarantee + back
                              ? static_cast<double>(held - guarantee - back)
                              : 0;
  return borrowed / pools_.at(id).shares.at(tenant).quota.weight;
}

uint64_t ReferenceModel::HandlesOf(std::optional<TenantId> tenant) const {
  uint64_t sum = 0;
  for (const auto& [id, lease] : leases_) {
    if (!tenant || lease.tenant == *tenant) sum += lease.handles;
  }
  return sum;
}

std::optional<Refusal> ReferenceModel::Impossible(const Wanted& request,
                                                  PoolId pool) const {
  const uint64_t bytes = request.bytes.at(pool);
  const uint64_t limit = Limit(pool, request.tenant);
  if (bytes > limit) return Refusal{Reason::kTenantLimit, bytes - limit};
  const uint64_t hard = Hard(pool, request.tenant) + bytes;
  if (hard <= Guarantee(pool, request.tenant)) return {};
  uint64_t sum = std::min(hard, limit) + pools_.at(pool).missing -
                 pools_.at(pool).returning;
  for (const auto& [tenant, share] : pools_.at(pool).shares) {
    if (request.hard && tenant != request.tenant)
      sum += Guarantee(pool, tenant);
  }
  if (sum <= pools_.at(pool).target) return {};
  return Refusal{Reason::kOvercommitted, sum - pools_.at(pool).target};
}

void ReferenceModel::On(const Acquire& event) {
  if (IsWaiting(event.request)) return;
  Wanted wanted{.request = event.request,
                .session = event.session,
                .tenant = event.tenant,
                .bytes = {{event.pool, event.bytes}},
                .handles = event.handles,
                .deadline = event.deadline,
                .hard = event.hard,
                .leases = {}};
  if (event.bytes == 0 || event.handles == 0)
    return Deny(wanted, {Reason::kBadRequest});
  if (!max_handles_.contains(event.tenant))
    return Deny(wanted, {Reason::kNoSuchTenant});
  if (!pools_.contains(event.pool)) return Deny(wanted, {Reason::kNoSuchPool});
  const ModelPool& pool = pools_.at(event.pool);
  if (pool.draining) return Deny(wanted, {Reason::kDraining});
  uint64_t& bytes = wanted.bytes.at(event.pool);
  while (bytes <= kMaxPoolBytes && bytes % pool.granularity != 0) ++bytes;
  if (const auto refusal = Impossible(wanted, event.pool))
    return Deny(wanted, *refusal);
  if (HandlesOf(event.tenant) + event.handles > max_handles_.at(event.tenant) ||
      HandlesOf({}) + event.handles > options_.max_handles) {
    return Deny(wanted, {Reason::kTooManyHandles});
  }
  Arrive(wanted);
}

void ReferenceModel::Arrive(const Wanted& request) {
  size_t ahead = 0;
  for (const auto& [pool, unused] : request.bytes) {
    const auto here = [id = pool](const ModelWaiter& waiter) {
      return waiter.wanted.bytes.contains(id);
    };
    const auto n = std::count_if(waiters_.begin(), waiters_.end(), here);
    ahead = std::max(ahead, static_cast<size_t>(n));
  }
  waiters_.push_back({.wanted = request, .head_since = {}});
  waiters_.back().wanted.since = now_;
  ServeAll();
  if (!IsWaiting(request.request)) return;
  if (request.deadline <= now_) {
    waiters_.pop_back();
    Deny(request, WhyNotNow(request));
  } else if (pausing_.contains(request.session) && !WithinGuarantee(request)) {
    waiters_.pop_back();
    Deny(request, WhyNotNow(request), true);
  } else {
    requests_.push_back(Waiting{.request = request.request, .ahead = ahead});
  }
}

std::vector<ReferenceModel::Wanted> ReferenceModel::Order(PoolId pool) const {
  using Rank = std::tuple<bool, double, size_t, size_t>;
  std::vector<std::pair<Rank, Wanted>> ranked;
  for (size_t i = 0; i < waiters_.size(); ++i) {
    const Wanted& request = waiters_[i].wanted;
    if (!request.bytes.contains(pool)) continue;
    size_t oldest = 0;  // arrival of the tenant's oldest
    while (waiters_[oldest].wanted.tenant != request.tenant ||
           !waiters_[oldest].wanted.bytes.contains(pool)) {
      ++oldest;
    }
    ranked.push_back({{!WithinGuarantee(request, pool),
                       Priority(pool, request.tenant), oldest, i},
                      request});
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Wanted> order;
  for (const auto& [rank, request] : ranked) {
    // Held back by its own limit: as if it were not there.
    if (HeldBack(request, pool) == 0) order.push_back(request);
  }
  return order;
}

std::optional<ReferenceModel::Wanted> ReferenceModel::Next(PoolId pool) {
  const std::vector<Wanted> order = Order(pool);
  for (const Wanted& request : order) {
    if (WithinGuarantee(request, pool) && Fits(request, pool)) return request;
  }
  if (Committed(pool) > Usable(pool)) return {};  // broken: nobody borrows
  if (pools_.at(pool).capacity > pools_.at(pool).target) return {};
  if (std::max<int64_t>(Free(pool), 0) <
      static_cast<int64_t>(KeptWithin(pool))) {
    return {};
  }
  for (const ModelWaiter* head : Heads(pool, false)) {
    auto& since = WaiterOf(head->wanted.request).head_since;
    if (!since) since = now_;
  }
  for (const Wanted& request : order) {
    if (!WithinGuarantee(request, pool) && Fits(request, pool)) return request;
  }
  return {};
}

ReferenceModel::ModelWaiter& ReferenceModel::WaiterOf(RequestId request) {
  return *std::find_if(waiters_.begin(), waiters_.end(),
                       [&](const ModelWaiter& waiter) {
                         return waiter.wanted.request == request;
                       });
}

bool ReferenceModel::IsWaiting(RequestId request) const {
  return std::any_of(waiters_.begin(), waiters_.end(),
                     [&](const ModelWaiter& waiter) {
                       return waiter.wanted.request == request;
                     });
}

bool ReferenceModel::IsFrontOfItsTenant(const Wanted& request,
                                        PoolId pool) const {
  for (const ModelWaiter& waiter : waiters_) {
    const Wanted& other = waiter.wanted;
    if (!other.bytes.contains(pool) || other.tenant != request.tenant) continue;
    if (HeldBack(other, pool) > 0 || WithinGuarantee(other, pool)) continue;
    return other.request == request.request;
  }
  return false;
}

bool ReferenceModel::Serve(PoolId pool) {
  bool served = false;
  while (const std::optional<Wanted> request = Next(pool)) {
    served = true;
    Take(
        [&](const Wanted& other) { return other.request == request->request; });
    if (request->IsRestore()) {
      uint64_t bytes = 0;
      for (const LeaseId id : request->leases) {
        leases_.at(id).evicted = false;
        bytes += leases_.at(id).bytes;
      }
      requests_.push_back(Restored{.request = request->request,
                                   .session = request->session,
                                   .tenant = request->tenant,
                                   .bytes = bytes});
      continue;
    }
    if (HandlesOf(request->tenant) + request->handles >
            max_handles_.at(request->tenant) ||
        HandlesOf({}) + request->handles > options_.max_handles) {
      Deny(*request, {Reason::kTooManyHandles});
      continue;
    }
    const LeaseId id{++last_lease_};
    const uint64_t bytes = request->bytes.at(pool);
    leases_.emplace(id, ModelLease{.session = request->session,
                                   .tenant = request->tenant,
                                   .pool = pool,
                                   .bytes = bytes,
                                   .handles = request->handles,
                                   .hard = request->hard});
    requests_.push_back(Granted{.request = request->request,
                                .lease = id,
                                .session = request->session,
                                .tenant = request->tenant,
                                .pool = pool,
                                .bytes = bytes,
                                .handles = request->handles});
    Settle(pool);
  }
  return served;
}

void ReferenceModel::ServeAll() {
  bool served = true;
  while (served) {
    served = false;
    for (const auto& [pool, unused] : pools_) served = Serve(pool) || served;
  }
}

void ReferenceModel::Expire() {
  const auto earlier = [](const ModelWaiter& a, const ModelWaiter& b) {
    return a.wanted.deadline < b.wanted.deadline;
  };
  ServeAll();
  // One after the other: those that are still to go keep others back.
  while (!waiters_.empty()) {
    const auto next =
        std::min_element(waiters_.begin(), waiters_.end(), earlier);
    if (next->wanted.deadline > now_) break;
    if (next->wanted.linger > Nanoseconds(0) && next->wanted.bytes.size() < 2) {
      next->wanted.deadline =
          now_ + std::exchange(next->wanted.linger, Nanoseconds(0));
      continue;
    }
    const Wanted request = next->wanted;
    waiters_.erase(next);
    Deny(request, WhyNotNow(request));
    ServeAll();
  }
}

void ReferenceModel::Deny(const Wanted& request, const Refusal& refusal,
                          bool pausing) {
  requests_.push_back(Denied{.request = request.request,
                             .session = request.session,
                             .reason = refusal.reason,
                             .deficit_bytes = refusal.deficit_bytes,
                             .claimed = refusal.claimed,
                             .pausing = pausing});
}

Refusal ReferenceModel::WhyNotNow(const Wanted& request) const {
  std::optional<Refusal> most;
  const auto say = [&](Reason reason, uint64_t deficit, bool claimed) {
    const bool louder =
        !most || (most->claimed && !claimed) ||
        (most->claimed == claimed && deficit > most->deficit_bytes);
    if (louder) most = Refusal{reason, deficit, claimed};
  };
  for (const auto& [pool, bytes] : request.bytes) {
    const uint64_t held_back = HeldBack(request, pool);
    const int64_t lacking = Lacking(request, pool);
    if (held_back > 0) {
      say(Reason::kTenantLimit, held_back, false);
    } else if (lacking > 0) {
      say(Reason::kPoolExhausted, static_cast<uint64_t>(lacking), false);
    } else if (!WithinGuarantee(request, pool)) {
      const int64_t beside = LackingBeside(request, pool, false);
      if (beside > 0)
        say(Reason::kPoolExhausted, static_cast<uint64_t>(beside), true);
    }
  }
  return most.value_or(Refusal{Reason::kPoolExhausted, 0, true});
}

void ReferenceModel::On(const Cancel& event) {
  for (const Wanted& request : Take([&](const Wanted& other) {
         return other.request == event.request;
       })) {
    Deny(request, {Reason::kCancelled});
  }
}

void ReferenceModel::On(const SessionClosed& event) {
  pausing_.erase(event.session);
  for (const Wanted& request : Take([&](const Wanted& other) {
         return other.session == event.session;
       })) {
    Deny(request, {Reason::kCancelled});
  }
}

void ReferenceModel::On(const Released& event) { End(event.lease); }
void ReferenceModel::On(const GrantFailed& event) { End(event.lease); }
void ReferenceModel::On(const Tick&) {}

}  // namespace gmb::quota
