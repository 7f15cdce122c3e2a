// Eviction: which leases give way to a demand, by which step, and when.
#include "quota/planner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "quota/candidate.h"
#include "quota/trimmers.h"

namespace gmb::quota {
namespace {

class Planner {
 public:
  Planner(const Snapshot& snapshot, const Demand& demand, Instant now,
          const PlannerOptions& options, bool explain)
      : snapshot_(snapshot),
        demand_(demand),
        now_(now),
        options_(options),
        judge_(snapshot, demand, now, options) {
    if (explain) verdicts_.resize(snapshot.leases.size(), Verdict::kNotNeeded);
  }

  Plan Make() {
    bool enough = true;
    for (const Need& need : demand_.needs) {
      // The snapshot may have one lease alone of a session that could trim.
      const uint64_t trimmed = PlanTrims(need);
      const uint64_t bytes = Capped(need);
      if (demand_.cause == Cause::kOperator &&
          demand_.last_step == Step::kTrim) {
        plan_.short_bytes += bytes - std::min(bytes, trimmed);
        continue;
      }
      enough = PlanVictims(need.pool, bytes, trimmed) && enough;
    }
    // Taking from others without being served would help nobody.
    if (!enough && judge_.rules().borrows) {
      for (const Victim& victim : plan_.victims) {
        plan_.short_bytes += victim.bytes;
        Say(victim.lease, Verdict::kInsufficient);
      }
      plan_.victims.clear();
    }
    SetDeadlines();
    plan_.retry_at = judge_.retry_at();
    return std::move(plan_);
  }

  void Explain(std::vector<LeaseVerdict>& why) const {
    for (size_t i = 0; i < snapshot_.leases.size(); ++i) {
      const LeaseRow& lease = snapshot_.leases[i];
      const bool in_question = std::any_of(
          demand_.needs.begin(), demand_.needs.end(),
          [&](const Need& need) { return need.pool == lease.pool; });
      if (in_question) {
        why.push_back({.lease = lease.lease, .verdict = verdicts_[i]});
      }
    }
  }

 private:
  void Say(const LeaseRow& lease, Verdict verdict) {
    if (verdicts_.empty()) return;
    verdicts_[static_cast<size_t>(&lease - snapshot_.leases.data())] = verdict;
  }
  void Say(LeaseId lease, Verdict verdict) {
    for (size_t i = 0; i < verdicts_.size(); ++i) {
      if (snapshot_.leases[i].lease == lease) verdicts_[i] = verdict;
    }
  }

  // No more than there is, where everything is demanded.
  uint64_t Capped(const Need& need) const {
    const bool everything = demand_.cause == Cause::kTenantDelete ||
                            demand_.cause == Cause::kPoolDrain ||
                            demand_.cause == Cause::kOperator;
    if (!everything) return need.bytes;
    uint64_t bytes = 0;
    for (const LeaseRow& lease : snapshot_.leases) {
      const bool counts =
          lease.pool == need.pool && !lease.evicted && judge_.IsAsked(lease);
      if (counts) bytes += lease.bytes;
    }
    return std::min(bytes, need.bytes);
  }

  // Nothing is taken later of those that are asked to trim and no more: they
  // have all the time that the demand has.
  Instant TrimDeadline() const {
    if (demand_.last_step == Step::kTrim) return demand_.deadline;
    // One that is over is that of a request that was put off, and waits on.
    const Instant latest =
        demand_.deadline > now_ ? demand_.deadline : Instant::Max();
    return std::min(now_ + options_.trim_wait, latest);
  }

  // Whether leases of sessions that rest would do, at once and without a copy.
  bool RestingSuffice(PoolId pool, uint64_t need_bytes) {
    const auto taken = taken_;
    const auto verdicts = verdicts_;
    const uint64_t host_used = host_used_;
    std::vector<Candidate> picked;
    Pick(
        Candidates(pool), need_bytes,
        [&](const Candidate& a, const Candidate& b) {
          return ComesBefore(RankOf(a), RankOf(b), need_bytes);
        },
        picked);
    taken_ = taken;
    verdicts_ = verdicts;
    host_used_ = host_used;
    return Sum(picked) >= need_bytes &&
           std::all_of(picked.begin(), picked.end(), [&](const Candidate& one) {
             return one.step == Step::kEvict && one.copy_bytes == 0 &&
                    one.start <= now_ && Rests(*one.lease, now_, options_);
           });
  }

  // The bytes that the asked sessions said they could give back.
  uint64_t PlanTrims(const Need& need) {
    const uint64_t need_bytes = std::max(need.bytes, need.trim_bytes);
    const Trimmers trimmers =
        TrimmersOf(snapshot_, judge_, need.pool, now_, options_);
    uint64_t bytes = trimmers.asked_bytes;
    // Nothing else is taken where trims alone are allowed, or alone help. And a
    // guarantee does not wait for one who may not answer its Evict.
    bool late = demand_.last_step == Step::kTrim ||
                demand_.cause == Cause::kWithinGuarantee ||
                need_bytes > need.bytes;
    for (const LeaseRow* lease : trimmers.rows) {
      if (bytes >= need_bytes || plan_.trims.size() >= kMaxVictims) break;
      if (!late && !Rests(*lease, now_, options_)) {
        if (RestingSuffice(need.pool, need_bytes - bytes)) break;
        late = true;
      }
      plan_.trims.push_back({.session = lease->session,
                             .tenant = lease->tenant,
                             .pool = need.pool,
                             .bytes = lease->trimmable_bytes});
      bytes += lease->trimmable_bytes;
    }
    if (bytes > 0) plan_.trim_by = std::min(demand_.trim_by, TrimDeadline());
    return bytes;
  }

  // How much of a tenant's excess earlier victims have left.
  uint64_t ExcessLeft(const TenantRow& tenant) const {
    const uint64_t excess = ExcessBytes(tenant);
    const auto taken = taken_.find(&tenant);
    return taken == taken_.end() ? excess
                                 : excess - std::min(excess, taken->second);
  }

  std::optional<Verdict> MayTake(const Candidate& candidate) const {
    const LeaseRow& lease = *candidate.lease;
    if (judge_.IsGuaranteed(candidate, ExcessLeft(*candidate.tenant)))
      return Verdict::kGuaranteed;
    if (!lease.host_room && candidate.step != Step::kTerminate &&
        candidate.copy_bytes > snapshot_.host_free_bytes - host_used_) {
      return Verdict::kNoHostRoom;
    }
    return std::nullopt;
  }

  void Take(const Candidate& candidate) {
    taken_[candidate.tenant] += candidate.lease->bytes;
    if (!candidate.lease->host_room && candidate.step != Step::kTerminate) {
      host_used_ += candidate.copy_bytes;
    }
  }

  // Candidates as a heap whose top comes first.
  std::vector<Candidate> Candidates(PoolId pool) {
    std::vector<Candidate> candidates;
    for (const LeaseRow& lease : snapshot_.leases) {
      if (lease.pool != pool) continue;
      Candidate candidate;
      if (const auto refused = judge_.Examine(lease, candidate)) {
        Say(lease, *refused);
      } else {
        candidates.push_back(candidate);
      }
    }
    return candidates;
  }

  // Picks until the need is met; counts on beyond kMaxVictims without picking.
  // Answers what is lacking if there were no such bound.
  template <typename Before>
  uint64_t Pick(std::vector<Candidate> candidates, uint64_t need_bytes,
                const Before& before, std::vector<Candidate>& picked) {
    const auto after = [&](const Candidate& a, const Candidate& b) {
      return before(b, a);
    };
    std::make_heap(candidates.begin(), candidates.end(), after);
    const size_t room = kMaxVictims - plan_.victims.size();
    uint64_t lacking = need_bytes;
    while (lacking > 0 && !candidates.empty()) {
      std::pop_heap(candidates.begin(), candidates.end(), after);
      const Candidate next = candidates.back();
      candidates.pop_back();
      if (const auto refused = MayTake(next)) {
        Say(*next.lease, *refused);
        continue;
      }
      Take(next);
      lacking -= std::min(lacking, next.lease->bytes);
      if (picked.size() < room) {
        picked.push_back(next);
      } else {
        Say(*next.lease, Verdict::kTooMany);
      }
    }
    return lacking;
  }

  static uint64_t Sum(const std::vector<Candidate>& picked) {
    uint64_t bytes = 0;
    for (const Candidate& candidate : picked) bytes += candidate.lease->bytes;
    return bytes;
  }

  // Whether the need can be met, now or by further plans.
  bool PlanVictims(PoolId pool, uint64_t need_bytes, uint64_t trimmed_bytes) {
    const std::vector<Candidate> candidates = Candidates(pool);
    const auto taken = taken_;
    const uint64_t host_used = host_used_;
    std::vector<Candidate> picked;
    const uint64_t lacking = Pick(
        candidates, need_bytes,
        [&](const Candidate& a, const Candidate& b) {
          return ComesBefore(RankOf(a), RankOf(b), need_bytes);
        },
        picked);
    if (lacking <= snapshot_.beyond_bytes && Sum(picked) < need_bytes) {
      // More victims than there may be: then fewer and larger ones.
      taken_ = taken;
      host_used_ = host_used;
      std::vector<Candidate> larger;
      Pick(
          candidates, need_bytes,
          [&](const Candidate& a, const Candidate& b) {
            return std::make_tuple(RankOf(a).step_order, a.young, a.restless,
                                   ~a.lease->bytes, a.lease->lease) <
                   std::make_tuple(RankOf(b).step_order, b.young, b.restless,
                                   ~b.lease->bytes, b.lease->lease);
          },
          larger);
      if (Sum(larger) > Sum(picked)) picked = std::move(larger);
    }
    uint64_t bytes = Sum(picked);
    // A victim that a later, larger one has made needless is let off.
    for (size_t i = picked.size(); i-- > 0 && bytes > need_bytes;) {
      const uint64_t own_bytes = picked[i].lease->bytes;
      if (bytes - own_bytes < need_bytes) continue;
      bytes -= own_bytes;
      picked.erase(picked.begin() + static_cast<std::ptrdiff_t>(i));
    }
    plan_.short_bytes += need_bytes - std::min(need_bytes, bytes);
    Accept(picked, need_bytes, trimmed_bytes);
    if (lacking <= snapshot_.beyond_bytes) return true;
    // One that collects takes what there is if the others may come later.
    return demand_.collects && lacking <= PossibleLater(pool);
  }

  // The bytes that leases which refuse for the time being could give, as far as
  // these are borrowed.
  uint64_t PossibleLater(PoolId pool) const {
    absl::flat_hash_map<const TenantRow*, uint64_t> possible;
    for (const LeaseRow& lease : snapshot_.leases) {
      const TenantRow* tenant = judge_.FindTenant(lease.tenant, pool);
      const bool later = lease.pool == pool && tenant != nullptr &&
                         judge_.MayComeLater(lease, *tenant);
      if (later) possible[tenant] += lease.bytes;
    }
    uint64_t bytes = snapshot_.later_bytes;
    for (const auto& [tenant, sum] : possible) {
      const bool lent =
          options_.lend_parked_guarantees || tenant->tenant == demand_.tenant;
      bytes += lent ? sum : std::min(sum, ExcessLeft(*tenant));
    }
    return bytes;
  }

  void Accept(const std::vector<Candidate>& picked, uint64_t need_bytes,
              uint64_t trimmed_bytes) {
    const uint64_t at_once_bytes =
        need_bytes - std::min(need_bytes, trimmed_bytes);
    uint64_t bytes = 0;
    for (const Candidate& candidate : picked) {
      const LeaseRow& lease = *candidate.lease;
      Say(lease, Verdict::kTaken);
      // Trimming may make the last ones needless. They wait for it once: a
      // client that says again and again that it could trim holds nobody up.
      const Instant start = bytes >= at_once_bytes
                                ? std::max(candidate.start, plan_.trim_by)
                                : candidate.start;
      bytes += lease.bytes;
      plan_.victims.push_back(
          {.lease = lease.lease,
           .session = lease.session,
           .group = lease.group,
           .tenant = lease.tenant,
           .pool = lease.pool,
           .bytes = lease.bytes,
           .copy_bytes = candidate.copy_bytes,
           .step = candidate.step,
           .start = start,
           .deadline = candidate.step == Step::kPause
                           ? start + candidate.tenant->pause_grace
                           : start + options_.unmap_grace,
           .may_terminate = candidate.tenant->may_terminate});
    }
  }

  // Copies go over one bus, one after the other.
  void SetDeadlines() {
    plan_.trim_deadline = plan_.trims.empty() ? now_ : TrimDeadline();
    std::stable_sort(
        plan_.victims.begin(), plan_.victims.end(),
        [](const Victim& a, const Victim& b) { return a.start < b.start; });
    for (Victim& victim : plan_.victims) {
      plan_.planned_bytes += victim.bytes;
      plan_.copy_bytes += victim.copy_bytes;
      if (victim.step != Step::kEvict) continue;
      victim.deadline =
          victim.deadline + 2 * CopyTime(plan_.copy_bytes, options_);
    }
  }

  const Snapshot& snapshot_;
  const Demand& demand_;
  const Instant now_;
  const PlannerOptions& options_;
  Judge judge_;
  std::vector<Verdict> verdicts_;  // by row; empty: nobody asked
  absl::flat_hash_map<const TenantRow*, uint64_t> taken_;
  uint64_t host_used_ = 0;
  Plan plan_;
};

}  // namespace

Plan MakePlan(const Snapshot& snapshot, const Demand& demand, Instant now,
              const PlannerOptions& options, std::vector<LeaseVerdict>* why) {
  Planner planner(snapshot, demand, now, options, why != nullptr);
  Plan plan = planner.Make();
  if (why != nullptr) planner.Explain(*why);
  return plan;
}

}  // namespace gmb::quota
