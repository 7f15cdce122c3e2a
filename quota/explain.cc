// `gmb why`: what a tenant could get, and what stands in the way.
#include "quota/explain.h"

#include <algorithm>

namespace gmb::quota {
namespace {

constexpr size_t kMaxBorrowers = 8;

}  // namespace

uint64_t ObtainableBytes(const PoolState& pool, const Account& account) {
  if (pool.draining) return 0;
  const int64_t left_bytes = static_cast<int64_t>(account.GuaranteeLeftBytes());
  const int64_t slack_bytes = pool.ledger.SlackBytes();
  // A sum that is not broken has the guarantees' bytes free; a broken one lends
  // nothing.
  const int64_t pool_bytes =
      slack_bytes >= 0 && !pool.ledger.IsShrinking()
          ? std::max(left_bytes, slack_bytes + static_cast<int64_t>(
                                                   account.HardRoomBytes()))
          : std::clamp<int64_t>(pool.ledger.FreeBytes(), 0, left_bytes);
  const int64_t free_bytes = std::max<int64_t>(pool.ledger.FreeBytes(), 0);
  const uint64_t bytes =
      std::min(static_cast<uint64_t>(std::min(pool_bytes, free_bytes)),
               account.LimitLeftBytes());
  return bytes - bytes % pool.ledger.granularity_bytes();
}

uint64_t ObtainableSoftBytes(const PoolState& pool, const Account& account) {
  if (pool.draining) return 0;
  uint64_t bytes =
      static_cast<uint64_t>(std::max<int64_t>(pool.ledger.FreeBytes(), 0));
  if (pool.ledger.IsShrinking() || pool.ledger.SlackBytes() < 0) {
    bytes = std::min(bytes, account.GuaranteeLeftBytes());
  }
  bytes = std::min(bytes, account.LimitLeftBytes());
  return bytes - bytes % pool.ledger.granularity_bytes();
}

Explanation ExplainPool(const PoolState& pool, TenantId tenant) {
  const Ledger& ledger = pool.ledger;
  Explanation explanation;
  for (const Account* other : ledger.Accounts()) {
    if (other->tenant == tenant) continue;
    explanation.kept_for_guarantees_bytes += other->GuaranteeLeftBytes();
    if (other->BorrowedBytes() == 0) continue;
    explanation.borrowers.push_back(
        {.tenant = other->tenant, .borrowed_bytes = other->BorrowedBytes()});
  }
  std::stable_sort(explanation.borrowers.begin(), explanation.borrowers.end(),
                   [](const Borrower& a, const Borrower& b) {
                     return a.borrowed_bytes > b.borrowed_bytes;
                   });
  if (explanation.borrowers.size() > kMaxBorrowers)
    explanation.borrowers.resize(kMaxBorrowers);
  explanation.waiting_before = pool.queue.WaitingBefore(tenant);
  explanation.missing_bytes = ledger.missing_bytes();
  explanation.unreturned_bytes = ledger.unreturned_bytes();
  explanation.broken_bytes =
      static_cast<uint64_t>(std::max<int64_t>(-ledger.SlackBytes(), 0));
  explanation.shrinking_bytes = ledger.capacity_bytes() - ledger.target_bytes();
  explanation.draining = pool.draining;
  return explanation;
}

}  // namespace gmb::quota
