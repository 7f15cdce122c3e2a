// Why leases stay where they are is found in slices, tenant by tenant.
#include "broker/machine/verdict_walk.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "broker/machine/reclaim_rows.h"
#include "broker/machine/state.h"
#include "quota/candidate.h"

namespace gmb::broker {
namespace {

quota::TenantId OnlyOf(const quota::Demand& demand) {
  return quota::RulesOf(demand.cause).one_tenant ? demand.tenant
                                                 : quota::TenantId{};
}

}  // namespace

VerdictWalk::VerdictWalk(quota::Demand demand)
    : demand_(std::move(demand)),
      only_(OnlyOf(demand_)),
      shortlist_(demand_),
      tenant_(only_) {}

bool VerdictWalk::GoOn(const State& state, quota::Instant now, uint64_t most) {
  const uint64_t until = looked_at_ + most;
  for (auto it = state.tenants->From(tenant_); it != state.tenants->end();
       ++it) {
    if (only_.value != 0 && it->first != only_) break;
    if (it->first != tenant_) {
      shortlist_.EndTenant();
      session_ = 0;
      shared_ = false;
      lease_ = {};
    }
    tenant_ = it->first;
    if (!GoOnIn(state, it->second, now, until)) return false;
  }
  shortlist_.EndTenant();
  return true;
}

bool VerdictWalk::GoOnIn(const State& state, const Tenant& tenant,
                         quota::Instant now, uint64_t until) {
  ++looked_at_;
  if (!shared_) {
    const auto& sessions = state.sessions->OfTenant(tenant.id);
    for (auto id = sessions.lower_bound(session_); id != sessions.end(); ++id) {
      if (*id != session_) lease_ = {};
      session_ = *id;
      if (looked_at_ >= until) return false;
      ++looked_at_;
      const Session& session = state.SessionAt(*id);
      if (session.gate == nullptr) continue;
      for (auto lease = session.leases->lower_bound(lease_);
           lease != session.leases->end(); ++lease) {
        lease_ = *lease;
        if (looked_at_ >= until) return false;
        const Lease& one = state.LeaseAt(*lease);
        ++looked_at_;
        if (!one.sharing->shared) Show(state, one, now);
      }
      lease_ = quota::LeaseId{UINT64_MAX};
    }
    shared_ = true;
    lease_ = {};
  }
  for (auto key = state.shared_leases->lower_bound({tenant.id, lease_});
       key != state.shared_leases->end() && key->first == tenant.id; ++key) {
    lease_ = key->second;
    if (looked_at_ >= until) return false;
    const Lease& one = state.LeaseAt(lease_);
    looked_at_ += 1 + one.move->mappings.size();
    Show(state, one, now);
  }
  lease_ = quota::LeaseId{UINT64_MAX};
  return true;
}

void VerdictWalk::Show(const State& state, const Lease& lease,
                       quota::Instant now) {
  const quota::PoolId pool = demand_.needs.front().pool;
  if (lease.request.pool != pool) return;
  const bool trims = demand_.cause == quota::Cause::kOperator &&
                     demand_.last_step == quota::Step::kTrim;
  if (trims) return Count(quota::Verdict::kNotNeeded, 1, lease.bytes);
  const auto refused = shortlist_.Show(RowOf(state, lease, now),
                                       TenantRowOf(state, lease.tenant, pool),
                                       now, state.options.planner);
  if (refused.has_value()) Count(*refused, 1, lease.bytes);
}

void VerdictWalk::Count(quota::Verdict verdict, uint64_t leases,
                        uint64_t bytes) {
  if (leases == 0) return;
  VerdictSum& sum = sums_[verdict];
  sum.leases += leases;
  sum.bytes += bytes;
}

VerdictWalk::Found VerdictWalk::Finish(const State& state, quota::Instant now) {
  const Candidates candidates{.leases = shortlist_.Chosen(),
                              .beyond_bytes = shortlist_.beyond_bytes(),
                              .later_bytes = shortlist_.later_bytes()};
  std::vector<quota::LeaseVerdict> why;
  Found found{PlanAmong(state, demand_, now, candidates, &why).plan, {}};
  const absl::flat_hash_set<quota::LeaseId> chosen(candidates.leases.begin(),
                                                   candidates.leases.end());
  for (const quota::LeaseVerdict& one : why) {
    // A plan also sees leases of sessions that could trim.
    if (!chosen.contains(one.lease)) continue;
    Count(one.verdict, 1, state.LeaseAt(one.lease).bytes);
  }
  const quota::Shortlist::Sum kept = shortlist_.kept();
  Count(quota::Verdict::kGuaranteed, kept.leases, kept.bytes);
  const quota::Shortlist::Sum later = shortlist_.left_out();
  Count(found.plan.short_bytes > 0 ? quota::Verdict::kTooMany
                                   : quota::Verdict::kNotNeeded,
        later.leases, later.bytes);
  found.sentences = VerdictSentences(sums_);
  return found;
}

}  // namespace gmb::broker
