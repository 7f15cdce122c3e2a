// `gmb why`: what a tenant could get, and what stands in the way.
#include "quota/explain.h"

#include <algorithm>

namespace gmb::quota {
namespace {

constexpr size_t kMaxBorrowers = 8;
constexpr size_t kMaxClaims = 8;

// How much of the free bytes a tenant may borrow.
struct Borrowable {
  int64_t free_bytes = 0;
  int64_t slack_bytes = 0;  // hard bytes, beyond its hard room
};

Borrowable BorrowableBy(const PoolState& pool, const Account& account,
                        const Claims& claims) {
  const Ledger& ledger = pool.ledger;
  if (ledger.IsShrinking() || ledger.SlackBytes() < 0) return {};
  int64_t claimed_bytes = 0, claimed_slack_bytes = 0;
  for (const Claim& claim : claims.held) {
    if (!pool.queue.ComesBefore(claim, account.tenant, kNewPlace,
                                StandingOf(account))) {
      continue;
    }
    claimed_bytes = std::max(claimed_bytes, static_cast<int64_t>(claim.bytes));
    claimed_slack_bytes =
        std::max(claimed_slack_bytes, static_cast<int64_t>(claim.slack_bytes));
  }
  return {.free_bytes = ledger.FreeBytes() - claimed_bytes -
                        static_cast<int64_t>(claims.guaranteed_bytes),
          .slack_bytes =
              std::max<int64_t>(ledger.SlackBytes() - claimed_slack_bytes, 0)};
}

uint64_t Obtainable(const PoolState& pool, const Account& account,
                    int64_t borrowable_bytes) {
  if (pool.draining) return 0;
  // The guarantee's bytes are there whoever claims, if any are.
  const int64_t within_bytes =
      std::min(pool.ledger.FreeBytes(),
               static_cast<int64_t>(account.GuaranteeLeftBytes()));
  const uint64_t bytes = std::min(static_cast<uint64_t>(std::max<int64_t>(
                                      {within_bytes, borrowable_bytes, 0})),
                                  account.LimitLeftBytes());
  return bytes - bytes % pool.ledger.granularity_bytes();
}

// The requests for which bytes are kept.
void AddClaims(const PoolState& pool, const Account& account,
               const Claims& claims, Explanation& explanation) {
  const auto add = [&](const ClaimView& view) {
    explanation.claims.push_back(view);
    return explanation.claims.size() < kMaxClaims;
  };
  pool.queue.ForEachWithinGuarantee(
      [&](TenantId tenant, RequestId request, uint64_t bytes) {
        return add({.request = request,
                    .tenant = tenant,
                    .bytes = bytes,
                    .within_guarantee = true});
      });
  for (const Claim& claim : claims.held) {
    const bool before = pool.queue.ComesBefore(claim, account.tenant, kNewPlace,
                                               StandingOf(account));
    if (!before || explanation.claims.size() >= kMaxClaims) continue;
    add({.request = claim.request,
         .tenant = claim.tenant,
         .bytes = claim.bytes});
  }
}

}  // namespace

uint64_t ObtainableBytes(const PoolState& pool, const Account& account,
                         const Claims& claims) {
  const Borrowable left = BorrowableBy(pool, account, claims);
  return Obtainable(pool, account,
                    std::min(left.free_bytes,
                             left.slack_bytes + static_cast<int64_t>(
                                                    account.HardRoomBytes())));
}

uint64_t ObtainableSoftBytes(const PoolState& pool, const Account& account,
                             const Claims& claims) {
  return Obtainable(pool, account,
                    BorrowableBy(pool, account, claims).free_bytes);
}

Explanation ExplainPool(const PoolState& pool, TenantId tenant,
                        const Claims& claims) {
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
  explanation.missing_bytes = ledger.missing().bytes;
  explanation.unreturned_bytes = ledger.totals().unreturned_bytes;
  explanation.broken_bytes =
      static_cast<uint64_t>(std::max<int64_t>(-ledger.SlackBytes(), 0));
  explanation.shrinking_bytes = ledger.capacity_bytes() - ledger.target_bytes();
  explanation.draining = pool.draining;
  if (const Account* account = ledger.Find(tenant))
    AddClaims(pool, *account, claims, explanation);
  return explanation;
}

}  // namespace gmb::quota
