// Eviction: judges one lease for one demand.
#include "quota/candidate.h"

#include <algorithm>
#include <tuple>

namespace gmb::quota {

DemandRules RulesOf(Cause cause) {
  switch (cause) {
    case Cause::kWithinGuarantee:
      return {.guarantees_hold = true,
              .takes_young_late = true,
              .may_pause = true,
              .may_choose = true,
              .takes_forfeits = true};
    case Cause::kBorrow:
      return {.guarantees_hold = true,
              .borrows = true,
              .waits_for_young = true,
              .may_choose = true};
    case Cause::kOperator:
      return {.one_tenant = true};
    case Cause::kOverLimit:
      return {.one_tenant = true, .waits_for_young = true};
    case Cause::kPoolShrink:
      return {.guarantees_hold = true,
              .needs_excess = true,
              .waits_for_young = true};
    case Cause::kPoolDrain:
      return {.lets_in = true};
    case Cause::kTenantDelete:
      return {.one_tenant = true, .lets_in = true, .may_kill = true};
  }
  return {};
}

uint64_t ExcessBytes(const TenantRow& tenant) {
  return tenant.resident_bytes -
         std::min(tenant.resident_bytes, tenant.guarantee_bytes);
}

Nanoseconds CopyTime(uint64_t bytes, const PlannerOptions& options) {
  const double rate =
      std::max(1.0, static_cast<double>(options.copy_bytes_per_second));
  const double ns = static_cast<double>(bytes) / rate * 1e9;
  return Nanoseconds(static_cast<int64_t>(std::min(ns, 1e18)));
}

Instant ResidentUntil(const LeaseRow& lease, const TenantRow& tenant,
                      const PlannerOptions& options) {
  constexpr Nanoseconds kLongest = std::chrono::hours(24);
  const Nanoseconds restore =
      std::clamp(lease.restore_time, Nanoseconds(0), kLongest / 64);
  const int64_t restores =
      std::clamp<int64_t>(options.residency_restores, 0, 64);
  return std::max(
      lease.resident_since + std::max(tenant.min_residency, restores * restore),
      lease.coming_until);
}

bool IsRestless(const LeaseRow& lease, const PlannerOptions& options) {
  if (lease.usual_gap <= Nanoseconds(0)) return false;
  const uint64_t bytes = std::max(lease.bytes, lease.session_bytes);
  constexpr Nanoseconds kLongest = std::chrono::hours(24);
  const Nanoseconds out = std::min(CopyTime(bytes, options), kLongest);
  const Nanoseconds back = std::clamp(lease.restore_time, out, kLongest);
  const int64_t times = std::clamp<int64_t>(options.gap_round_trips, 0, 64);
  return lease.usual_gap < times * (out + back);
}

Judge::Judge(const Snapshot& snapshot, const Demand& demand, Instant now,
             const PlannerOptions& options)
    : snapshot_(snapshot),
      demand_(demand),
      now_(now),
      options_(options),
      rules_(RulesOf(demand.cause)) {}

const TenantRow* Judge::FindTenant(TenantId tenant, PoolId pool) const {
  const auto it = std::lower_bound(
      snapshot_.tenants.begin(), snapshot_.tenants.end(),
      std::tie(tenant, pool), [](const TenantRow& row, const auto& key) {
        return std::tie(row.tenant, row.pool) < key;
      });
  if (it == snapshot_.tenants.end() || it->tenant != tenant ||
      it->pool != pool) {
    return nullptr;
  }
  return &*it;
}

bool Judge::IsAsked(const LeaseRow& lease) const {
  return !rules_.one_tenant || lease.tenant == demand_.tenant;
}

bool Judge::IsOwn(const LeaseRow& lease) const {
  if (rules_.one_tenant || lease.tenant != demand_.tenant) return false;
  const bool same_group =
      demand_.group.value != 0 && lease.group == demand_.group;
  const bool uses = std::find(lease.users.begin(), lease.users.end(),
                              demand_.session) != lease.users.end();
  return lease.session == demand_.session || same_group || uses;
}

std::optional<Verdict> Judge::Terminate(Candidate& candidate, Instant start,
                                        Verdict otherwise) {
  if (!candidate.tenant->may_terminate) return otherwise;
  candidate.step = Step::kTerminate;
  candidate.start = std::max(start, now_);
  return std::nullopt;
}

std::optional<Verdict> Judge::Examine(const LeaseRow& lease,
                                      Candidate& candidate) {
  if (!IsAsked(lease)) return Verdict::kNotAsked;
  if (IsOwn(lease)) return Verdict::kOwn;
  if (lease.evicted) return Verdict::kEvicted;
  candidate = {.lease = &lease,
               .tenant = FindTenant(lease.tenant, lease.pool),
               .start = now_};
  if (candidate.tenant == nullptr) return Verdict::kBusy;
  // A session that does not answer has a step under way, so ask this before
  // `busy`.
  if (now_ >= lease.unmap_deadline) return ExamineOverdue(candidate);
  if (lease.busy) return Verdict::kBusy;
  if (rules_.may_choose && IsDistrusted(lease, *candidate.tenant))
    return Verdict::kDistrusted;
  if (now_ < lease.back_off_until) {
    retry_at_ = std::min(retry_at_, lease.back_off_until);
    return Verdict::kBackOff;
  }
  if (auto refused = ExamineGate(candidate)) return refused;
  if (candidate.step == Step::kTerminate) return std::nullopt;
  if (lease.contents != Contents::kDiscard) {
    candidate.copy_bytes =
        lease.bytes - std::min(lease.bytes, lease.backed_bytes);
  }
  candidate.restless = IsRestless(lease, options_);
  return ExamineAge(candidate);
}

// It may still answer until its time is over; then it is killed. A session that
// a request within its guarantee waits for is killed although others could be
// evicted: these may owe their answers just as long.
std::optional<Verdict> Judge::ExamineOverdue(Candidate& candidate) {
  const Instant kill_at = candidate.lease->unmap_deadline + options_.kill_grace;
  if (candidate.tenant->may_terminate && now_ < kill_at) {
    retry_at_ = std::min(retry_at_, kill_at);
    return Verdict::kBusy;
  }
  candidate.forfeit =
      rules_.takes_forfeits && ExcessBytes(*candidate.tenant) > 0;
  return Terminate(candidate, now_, Verdict::kMayNotTerminate);
}

std::optional<Verdict> Judge::ExamineGate(Candidate& candidate) {
  const LeaseRow& lease = *candidate.lease;
  std::optional<Verdict> refused;
  if (!options_.evict) {
    refused = Verdict::kNotNeeded;
  } else if (lease.contents == Contents::kResident || !lease.evictable) {
    refused = Verdict::kResident;
  } else if (lease.gate == Gate::kOff) {
    refused = Verdict::kGateOff;
  } else if (lease.no_room) {
    refused = Verdict::kNoHostRoom;
  } else if (lease.gate == Gate::kActive) {
    refused = ExaminePause(candidate);
  }
  if (!refused || !rules_.may_kill) return refused;
  // Those who could not be asked have until the deadline to go by themselves.
  const Instant start = demand_.deadline == Instant::Max()
                            ? now_ + options_.unmap_grace
                            : demand_.deadline;
  return Terminate(candidate, start, *refused);
}

std::optional<Verdict> Judge::ExaminePause(Candidate& candidate) {
  const uint64_t excess_bytes = ExcessBytes(*candidate.tenant);
  if (!rules_.may_pause || !options_.pause || excess_bytes == 0)
    return Verdict::kActive;
  const Instant spared_until = candidate.lease->no_pause_until;
  if (now_ < spared_until) {
    retry_at_ = std::min(retry_at_, spared_until);
    return Verdict::kPauseFailed;
  }
  candidate.step = Step::kPause;
  candidate.borrowed_per_weight =
      static_cast<double>(excess_bytes) / candidate.tenant->weight;
  return std::nullopt;
}

std::optional<Verdict> Judge::ExamineUntil(Instant until) {
  if (until <= now_) return std::nullopt;
  retry_at_ = std::min(retry_at_, until);
  return Verdict::kYoung;
}

std::optional<Verdict> Judge::ExamineAge(Candidate& candidate) {
  const LeaseRow& lease = *candidate.lease;
  if (!rules_.waits_for_young && !rules_.takes_young_late) {
    // Operators need not wait until it is old; until its session is in, they do:
    // it would come and go for as long as they want it.
    return ExamineUntil(rules_.lets_in
                            ? std::max(lease.coming_until, lease.let_in_until)
                            : lease.coming_until);
  }
  const Instant until = ResidentUntil(lease, *candidate.tenant, options_);
  if (until <= now_) return std::nullopt;
  if (rules_.waits_for_young) return ExamineUntil(until);
  // It keeps its time unless the request would miss its deadline by that.
  Nanoseconds needed = 2 * CopyTime(candidate.copy_bytes, options_) +
                       std::chrono::milliseconds(50);
  if (candidate.step == Step::kPause) needed += candidate.tenant->pause_grace;
  candidate.young = true;
  candidate.start =
      demand_.deadline == Instant::Max()
          ? until
          : std::max(now_, std::min(until, demand_.deadline + -needed));
  return std::nullopt;
}

bool IsDistrusted(const LeaseRow& lease, const TenantRow& tenant) {
  return lease.owed_by_process >= kMostOwedByProcess ||
         tenant.owed_answers >= kMostOwedByTenant;
}

bool Judge::MayComeLater(const LeaseRow& lease, const TenantRow& tenant) const {
  const bool may_come = !lease.evicted && lease.evictable && !lease.no_room &&
                        lease.contents != Contents::kResident &&
                        lease.gate != Gate::kOff && !IsOwn(lease) &&
                        !IsDistrusted(lease, tenant);
  return may_come && (lease.gate == Gate::kActive || lease.busy ||
                      now_ < lease.back_off_until ||
                      now_ < ResidentUntil(lease, tenant, options_));
}

bool Judge::IsGuaranteed(const Candidate& candidate,
                         uint64_t excess_bytes) const {
  if (!rules_.guarantees_hold || candidate.step == Step::kTerminate)
    return false;
  if (!rules_.borrows) return excess_bytes == 0;
  const LeaseRow& lease = *candidate.lease;
  const bool parked = candidate.step == Step::kEvict;
  const bool lent = lease.tenant == demand_.tenant ||
                    (options_.lend_parked_guarantees && parked);
  return !lent && excess_bytes < lease.bytes;
}

Rank RankOf(const Candidate& candidate) {
  // All of one process before the next one is killed.
  const bool kills = candidate.step == Step::kTerminate;
  return {
      .step_order = candidate.forfeit ? -1 : static_cast<int>(candidate.step),
      .young = candidate.young,
      .borrowed_per_weight = candidate.borrowed_per_weight,
      .restless = candidate.restless,
      .copies = candidate.copy_bytes > 0,
      .process = kills ? candidate.lease->session.value : 0,
      .idle_since = candidate.lease->idle_since,
      .bytes = candidate.lease->bytes,
      .lease = candidate.lease->lease};
}

bool ComesBefore(const Rank& a, const Rank& b, uint64_t need_bytes) {
  const auto excess = [&](const Rank& rank) -> std::pair<bool, uint64_t> {
    if (rank.bytes >= need_bytes) return {false, rank.bytes - need_bytes};
    return {true, need_bytes - rank.bytes};  // the largest first
  };
  // The tenant that has borrowed most is paused first.
  return std::make_tuple(a.step_order, a.young, -a.borrowed_per_weight,
                         a.restless, a.copies, a.process, a.idle_since,
                         excess(a), a.lease) <
         std::make_tuple(b.step_order, b.young, -b.borrowed_per_weight,
                         b.restless, b.copies, b.process, b.idle_since,
                         excess(b), b.lease);
}

}  // namespace gmb::quota
