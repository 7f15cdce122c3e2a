// Trims: which sessions can give back what they cache, and who is asked first.
#include "quota/trimmers.h"

#include <algorithm>
#include <tuple>

namespace gmb::quota {
namespace {

struct Trimmer {
  const LeaseRow* row = nullptr;
  bool rests = false;
  bool guaranteed = false;  // its tenant borrows nothing
};

bool AskedBefore(const Trimmer& a, const Trimmer& b) {
  const auto key = [](const Trimmer& trimmer) {
    const LeaseRow& row = *trimmer.row;
    // One that was at work a moment ago is at work again the soonest.
    return std::make_tuple(!trimmer.rests, trimmer.guaranteed,
                           trimmer.rests ? Instant{} : row.idle_since,
                           ~row.trimmable_bytes, row.lease);
  };
  return key(a) < key(b);
}

}  // namespace

bool Rests(const LeaseRow& lease, Instant now, const PlannerOptions& options) {
  return now - lease.idle_since >= options.rest;
}

Trimmers TrimmersOf(const Snapshot& snapshot, const Judge& judge, PoolId pool,
                    Instant now, const PlannerOptions& options) {
  Trimmers found;
  std::vector<Trimmer> trimmers;
  for (const LeaseRow& row : snapshot.leases) {
    const bool asked =
        row.pool == pool && judge.IsAsked(row) && !judge.IsOwn(row);
    if (!asked) continue;
    found.asked_bytes += row.trimming_bytes;
    if (row.trimmable_bytes == 0 || now < row.back_off_until) continue;
    const TenantRow* tenant = judge.FindTenant(row.tenant, pool);
    if (judge.rules().may_choose && tenant != nullptr &&
        IsDistrusted(row, *tenant))
      continue;
    const bool guaranteed = tenant == nullptr || ExcessBytes(*tenant) == 0;
    if (judge.rules().needs_excess && guaranteed) continue;
    trimmers.push_back({.row = &row,
                        .rests = Rests(row, now, options),
                        .guaranteed = guaranteed});
  }
  std::sort(trimmers.begin(), trimmers.end(), AskedBefore);
  for (const Trimmer& trimmer : trimmers) found.rows.push_back(trimmer.row);
  return found;
}

}  // namespace gmb::quota
