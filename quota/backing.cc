// Copies ahead of need: which lease is next, and how fast.
#include "quota/backing.h"

#include <algorithm>
#include <tuple>

#include "quota/candidate.h"

namespace gmb::quota {
namespace {

const TenantRow* FindTenant(const Snapshot& snapshot, const LeaseRow& lease) {
  const auto it =
      std::lower_bound(snapshot.tenants.begin(), snapshot.tenants.end(),
                       std::tie(lease.tenant, lease.pool),
                       [](const TenantRow& row, const auto& key) {
                         return std::tie(row.tenant, row.pool) < key;
                       });
  const bool found = it != snapshot.tenants.end() &&
                     it->tenant == lease.tenant && it->pool == lease.pool;
  return found ? &*it : nullptr;
}

bool IsParkedForBacking(const LeaseRow& lease) {
  return lease.gate == Gate::kParked && !lease.evicted &&
         lease.contents == Contents::kPreserve && lease.evictable &&
         !lease.no_room;
}

}  // namespace

void BackingBudget::Refill(Instant now) {
  if (now <= filled_at_) return;
  const double earned = static_cast<double>((now - filled_at_).count()) * 1e-9 *
                        static_cast<double>(options_.rate());
  saved_bytes_ = std::min(saved_bytes_ + earned,
                          static_cast<double>(options_.burst_bytes));
  filled_at_ = now;
}

uint64_t BackingBudget::AvailableBytes(Instant now) {
  if (options_.rate() == 0) return 0;
  Refill(now);
  return static_cast<uint64_t>(saved_bytes_);
}

void BackingBudget::Spend(uint64_t bytes, Instant now) {
  Refill(now);
  saved_bytes_ = std::max(saved_bytes_ - static_cast<double>(bytes), 0.0);
}

Instant BackingBudget::AvailableAt(uint64_t bytes, Instant now) {
  const uint64_t available = AvailableBytes(now);
  if (bytes <= available) return now;
  if (options_.rate() == 0 || bytes > options_.burst_bytes) {
    return Instant::Max();
  }
  const double seconds = static_cast<double>(bytes - available) /
                         static_cast<double>(options_.rate());
  return now + Nanoseconds(static_cast<int64_t>(seconds * 1e9) + 1);
}

std::optional<BackingStep> NextToBack(const Snapshot& snapshot, Instant now,
                                      bool anybody_waits,
                                      uint64_t available_bytes,
                                      const BackingOptions& options,
                                      uint64_t wanted_bytes) {
  if (anybody_waits || available_bytes == 0) return std::nullopt;
  const LeaseRow* best = nullptr;
  uint64_t best_excess = 0, backed_bytes = 0;
  for (const LeaseRow& lease : snapshot.leases) {
    if (!IsParkedForBacking(lease)) continue;
    backed_bytes += std::min(lease.backed_bytes, lease.bytes);
    if (options.sealed_alone() && !lease.sealed) continue;
    const bool eligible = lease.backed_bytes < lease.bytes && !lease.busy &&
                          now >= lease.back_off_until &&
                          lease.idle_since + options.idle_for <= now;
    if (!eligible) continue;
    if (!lease.host_room && snapshot.host_free_bytes < lease.bytes) continue;
    const TenantRow* tenant = FindTenant(snapshot, lease);
    const uint64_t excess = tenant == nullptr ? 0 : ExcessBytes(*tenant);
    const bool better =
        best == nullptr ||
        std::make_tuple(~excess, lease.idle_since, lease.lease) <
            std::make_tuple(~best_excess, best->idle_since, best->lease);
    if (!better) continue;
    best = &lease;
    best_excess = excess;
  }
  if (best == nullptr || backed_bytes >= wanted_bytes) return std::nullopt;
  return BackingStep{
      .lease = best->lease,
      .bytes = std::min({best->bytes - best->backed_bytes, available_bytes,
                         wanted_bytes - backed_bytes, options.burst_bytes})};
}

}  // namespace gmb::quota
