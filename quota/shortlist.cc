// Eviction: many leases, of which few can be among a plan's victims.
#include "quota/shortlist.h"

#include <algorithm>
#include <utility>

namespace gmb::quota {

bool Shortlist::Skips(const TenantRow& tenant,
                      const PlannerOptions& options) const {
  const DemandRules rules = RulesOf(demand_.cause);
  if (rules.one_tenant) return tenant.tenant != demand_.tenant;
  if (!rules.guarantees_hold || ExcessBytes(tenant) > 0) return false;
  const bool lent =
      tenant.tenant == demand_.tenant || options.lend_parked_guarantees;
  return !(rules.borrows && lent);
}

std::optional<Verdict> Shortlist::Show(const LeaseRow& lease,
                                       const TenantRow& tenant, Instant now,
                                       const PlannerOptions& options) {
  const Snapshot snapshot{.leases = {}, .tenants = {&tenant, 1}};
  Judge judge(snapshot, demand_, now, options);
  ++shown_;
  its_excess_bytes_ = ExcessBytes(tenant);
  Candidate candidate;
  const auto refused = judge.Examine(lease, candidate);
  retry_at_ = std::min(retry_at_, judge.retry_at());
  if (refused) {
    any_busy_ |= *refused == Verdict::kBusy;
    if (judge.rules().borrows && judge.MayComeLater(lease, tenant)) {
      its_later_bytes_ += lease.bytes;
      its_later_is_lent_ =
          options.lend_parked_guarantees || lease.tenant == demand_.tenant;
    }
    return refused;
  }
  // A guarantee that keeps it from a tenant without any excess keeps it by
  // that excess.
  its_.push_back({.rank = RankOf(candidate),
                  .guarantee_counts = judge.IsGuaranteed(candidate, 0),
                  .whole = judge.rules().borrows});
  if (its_.size() > 2 * kLongest) its_pruned_bytes_ += Prune(its_);
  return std::nullopt;
}

void Shortlist::EndTenant() {
  std::sort(its_.begin(), its_.end(),
            [this](const Entry& a, const Entry& b) { return Before(a, b); });
  uint64_t left = its_excess_bytes_;
  bool any_counts = false;
  for (const Entry& entry : its_) {
    const uint64_t bytes = entry.rank.bytes;
    any_counts |= entry.guarantee_counts;
    const bool kept =
        entry.guarantee_counts && (entry.whole ? left < bytes : left == 0);
    if (kept) {
      ++kept_.leases;
      kept_.bytes += bytes;
      continue;
    }
    left -= std::min(left, bytes);
    entries_.push_back(entry);
  }
  beyond_bytes_ +=
      any_counts ? std::min(left, its_pruned_bytes_) : its_pruned_bytes_;
  later_bytes_ +=
      its_later_is_lent_ ? its_later_bytes_ : std::min(left, its_later_bytes_);
  its_.clear();
  its_pruned_bytes_ = 0;
  its_later_bytes_ = 0;
  its_later_is_lent_ = false;
  if (entries_.size() > 2 * kLongest) beyond_bytes_ += Prune(entries_);
}

std::vector<LeaseId> Shortlist::Chosen() {
  if (entries_.size() > kLongest) beyond_bytes_ += Prune(entries_);
  std::vector<LeaseId> leases;
  leases.reserve(entries_.size());
  for (const Entry& entry : entries_) leases.push_back(entry.rank.lease);
  return leases;
}

bool Shortlist::Before(const Entry& a, const Entry& b) const {
  return ComesBefore(a.rank, b.rank, demand_.needs.front().bytes);
}

uint64_t Shortlist::Prune(std::vector<Entry>& entries) {
  const auto end = entries.begin() + static_cast<std::ptrdiff_t>(kLongest);
  std::nth_element(
      entries.begin(), end, entries.end(),
      [this](const Entry& a, const Entry& b) { return Before(a, b); });
  uint64_t bytes = 0;
  for (auto it = end; it != entries.end(); ++it) bytes += it->rank.bytes;
  left_out_.leases += entries.size() - kLongest;
  left_out_.bytes += bytes;
  entries.erase(end, entries.end());
  return bytes;
}

}  // namespace gmb::quota
