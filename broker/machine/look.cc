// Leases that give way are found in slices: no turn takes longer because there
// are many leases.
#include "broker/machine/look.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "broker/machine/gate_watch_list.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/reclaim_rows.h"
#include "broker/machine/state.h"
#include "quota/candidate.h"

namespace gmb::broker {
namespace {

// If nothing is heard of a change: as a safeguard, for what nobody reports. It
// takes a hundredth of the time, or less.
constexpr quota::Nanoseconds kFirstPause = std::chrono::milliseconds(50);
constexpr quota::Nanoseconds kLongestPause = std::chrono::seconds(10);
constexpr quota::Nanoseconds kPauseALease = std::chrono::microseconds(100);

// Each once.
void Merge(absl::Span<const quota::LeaseId> more,
           std::vector<quota::LeaseId>* all) {
  for (const quota::LeaseId lease : more) {
    if (std::find(all->begin(), all->end(), lease) == all->end())
      all->push_back(lease);
  }
}

}  // namespace

void LookBudget::BeginTurn(quota::Instant now) {
  left_ = kSlice;
  taken_ = 0;
  if (now <= at_) return;
  const int64_t earned = std::min<int64_t>((now - at_).count(), 1'000'000'000) *
                         kASecond / 1'000'000'000;
  // A time that is too short to earn anything counts later.
  if (earned == 0) return;
  saved_ = std::min(saved_ + earned, kMostSaved);
  at_ = now;
}

quota::Instant LookBudget::BeginsAt() const {
  if (saved_ > 0) return at_;
  return at_ + quota::Nanoseconds((1 - saved_) * 1'000'000'000 / kASecond);
}

void LookBudget::Spend(uint64_t leases) {
  left_ -= std::min(left_, leases);
  saved_ -= static_cast<int64_t>(leases);
}

void Look::Begin(quota::Demand demand, uint64_t changes) {
  only_ = quota::RulesOf(demand.cause).one_tenant ? demand.tenant
                                                  : quota::TenantId{};
  shortlist_.emplace(std::move(demand));
  tenant_ = only_;
  lease_ = {};
  groups_ = {};
  changes_ = changes;
  plans_on_ = false;
}

void Look::Skip(uint64_t changes, quota::Instant now) {
  shortlist_.reset();
  groups_ = {};
  added_.clear();
  changes_ = changes;
  Wait(now, quota::Instant::Max());
}

bool Look::GoOn(const State& state, quota::PoolId pool, quota::Instant now,
                Costs costs) {
  const quota::PlannerOptions& options = state.options.planner;
  const ReclaimIndex::Listed& listed = state.reclaim->ListedIn(pool);
  for (auto it = listed.lower_bound(tenant_); it != listed.end(); ++it) {
    if (only_.value != 0 && it->first != only_) break;
    if (!costs.budget.any_left()) return false;
    if (it->first != tenant_) {
      shortlist_->EndTenant();
      lease_ = {};
    }
    tenant_ = it->first;
    costs.budget.Spend(1);
    const quota::TenantRow tenant = TenantRowOf(state, tenant_, pool);
    const bool skip = shortlist_->Skips(tenant, options) &&
                      !state.reclaim->HasOverdue(pool, tenant_);
    if (skip) continue;
    for (auto lease = it->second.lower_bound(lease_); lease != it->second.end();
         ++lease) {
      lease_ = *lease;
      if (!costs.budget.any_left()) return false;
      const Lease& one = state.LeaseAt(*lease);
      const uint64_t before = groups_.looks;
      const quota::LeaseRow row = RowOf(state, one, now, &groups_);
      const uint64_t members = groups_.looks - before;
      costs.budget.Spend(std::max<uint64_t>(one.move->mappings.size(), 1) +
                         members);
      shortlist_->Show(row, tenant, now, options);
      // Those of a group are watched since it was looked at.
      const bool known = row.group != quota::GroupId{} && members == 0;
      if (row.gate == quota::Gate::kActive && !known)
        costs.watch.Add(state, one, now);
    }
    lease_ = quota::LeaseId{UINT64_MAX};
  }
  shortlist_->EndTenant();
  End();
  return true;
}

void Look::End() {
  candidates_ = {.leases = shortlist_->Chosen(),
                 .beyond_bytes = shortlist_->beyond_bytes(),
                 .later_bytes = shortlist_->later_bytes(),
                 .retry_at = shortlist_->retry_at(),
                 .any_busy = shortlist_->any_busy()};
  seen_ = shortlist_->shown();
  shortlist_.reset();
  groups_ = {};
  ++times_;
  Merge(added_, &candidates_.leases);
  added_.clear();
}

bool Look::Add(const std::vector<quota::LeaseId>& leases, Changes changes) {
  if (leases.empty() || (times_ == 0 && !under_way())) return false;
  std::vector<quota::LeaseId>& known =
      under_way() ? added_ : candidates_.leases;
  constexpr size_t kMost = 2 * quota::Shortlist::kLongest;
  const size_t room = kMost - std::min(kMost, known.size());
  const size_t fit = std::min(leases.size(), room);
  if (fit == 0) return false;
  Merge({leases.data(), fit}, &known);
  if (changes_ == changes.before && fit == leases.size())
    changes_ = changes.after;
  // The first look says who comes first.
  if (times_ > 0) plans_on_ = true;
  return true;
}

Look::Found Look::MakePlan(const State& state, const quota::Demand& demand,
                           quota::Instant now) {
  const bool of_the_rest = plans_on_ && candidates_.beyond_bytes > 0;
  plans_on_ = false;
  // More are added to them, as sessions park.
  std::erase_if(candidates_.leases, [&](quota::LeaseId id) {
    const auto lease = state.leases->find(id);
    return lease == state.leases->end() || !lease->second->reclaim->listed;
  });
  Candidates candidates = candidates_;
  Merge(added_, &candidates.leases);
  PlanMade made = PlanAmong(state, demand, now, candidates);
  Found found{.plan = std::move(made.plan),
              .any_busy = candidates.any_busy,
              .of_the_rest = of_the_rest,
              .looks = made.looks,
              .trimmers_from = made.trimmers_from};
  found.plan.retry_at = std::min(found.plan.retry_at, candidates.retry_at);
  return found;
}

void Look::Wait(quota::Instant now, quota::Instant retry_at) {
  const quota::Nanoseconds least =
      std::max(kFirstPause, static_cast<int64_t>(seen_) * kPauseALease);
  pause_ = std::clamp(pause_ * 2, least, std::max(least, kLongestPause));
  next_at_ = std::min(now + pause_, retry_at);
}

}  // namespace gmb::broker
