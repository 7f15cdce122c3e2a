// Acquire: whether a request is granted, waits, or is refused.
#include "quota/admission.h"

#include <algorithm>

namespace gmb::quota {
namespace {

// Hard bytes that the sum of guarantees would have to take.
int64_t BeyondBytes(const Account& account, const Ask& ask) {
  if (!ask.hard) return 0;
  return std::max<int64_t>(static_cast<int64_t>(ask.bytes) -
                               static_cast<int64_t>(account.HardRoomBytes()),
                           0);
}

}  // namespace

Standing StandingOf(const Account& account) {
  return {.guarantee_left_bytes = account.GuaranteeLeftBytes(),
          .limit_left_bytes = account.LimitLeftBytes(),
          .restore_left_bytes = account.RestoreLeftBytes(),
          .hard_room_bytes = account.HardRoomBytes(),
          .borrowed_per_weight =
              static_cast<double>(account.TurnBytes()) / account.quota.weight};
}

std::optional<Refusal> CheckEver(const Ledger& ledger, const Account& account,
                                 const Ask& ask) {
  const ResolvedQuota& quota = account.requested;
  if (ask.bytes > quota.limit_bytes) {
    return Refusal{.reason = Reason::kTenantLimit,
                   .deficit_bytes = ask.bytes - quota.limit_bytes};
  }
  const uint64_t hard_bytes = account.HardBytes() + ask.bytes;
  if (hard_bytes <= quota.guarantee_bytes) return std::nullopt;
  // Above the limit for now means that the tenant must release first, down to
  // its limit.
  const uint64_t own_bytes = std::min(hard_bytes, quota.limit_bytes);
  // Bytes of their guarantees that others do not use serve soft leases as well.
  const uint64_t others_bytes =
      ask.hard ? ledger.totals().requested_bytes - quota.guarantee_bytes : 0;
  const uint64_t sum_bytes =
      own_bytes + others_bytes + ledger.missing().LostBytes();
  if (sum_bytes <= ledger.target_bytes()) return std::nullopt;
  return Refusal{.reason = Reason::kOvercommitted,
                 .deficit_bytes = sum_bytes - ledger.target_bytes()};
}

int64_t LackingBytes(const PoolState& pool, const Account& account,
                     const Ask& ask) {
  const Ledger& ledger = pool.ledger;
  const auto bytes = static_cast<int64_t>(ask.bytes);
  const int64_t not_free = bytes - ledger.FreeBytes();
  if (ask.bytes <= account.GuaranteeLeftBytes()) return not_free;
  // While operators wait for bytes, or the sum is broken, nobody borrows.
  const int64_t slack_bytes = ledger.SlackBytes();
  const int64_t kept = ledger.IsShrinking() ? 1 : 0;
  return std::max({not_free, BeyondBytes(account, ask) - slack_bytes, kept});
}

Lack LackOf(const PoolState& pool, const Account& account, const Ask& ask,
            uint64_t kept_for_guarantees_bytes) {
  const int64_t free_bytes = std::max<int64_t>(pool.ledger.FreeBytes(), 0) -
                             static_cast<int64_t>(kept_for_guarantees_bytes);
  if (static_cast<int64_t>(ask.bytes) > free_bytes) return Lack::kBytes;
  return LackingBytes(pool, account, ask) > 0 ? Lack::kSum : Lack::kNothing;
}

uint64_t KeptForGuarantees(const PoolState& pool) {
  uint64_t kept_bytes = 0;
  pool.queue.ForEachWithinGuarantee([&](TenantId, RequestId, uint64_t bytes) {
    kept_bytes += bytes;
    return static_cast<int64_t>(kept_bytes) <= pool.ledger.FreeBytes();
  });
  return kept_bytes;
}

int64_t LackingBesideClaims(const PoolState& pool, const Account& account,
                            const Ask& ask, const Claims& claims,
                            uint64_t place) {
  const auto bytes = static_cast<int64_t>(ask.bytes);
  const int64_t free_bytes =
      pool.ledger.FreeBytes() - static_cast<int64_t>(claims.guaranteed_bytes);
  int64_t lacking = bytes - free_bytes;
  for (const Claim& claim : claims.held) {
    if (claim.place == place ||
        !pool.queue.ComesBefore(claim, account.tenant, place,
                                StandingOf(account))) {
      continue;
    }
    lacking =
        std::max(lacking, LackingBeside(claim, bytes, BeyondBytes(account, ask),
                                        free_bytes, pool.ledger.SlackBytes()));
  }
  return lacking;
}

bool IsCovered(const PoolState& pool, const Account& account, const Ask& ask) {
  const Ledger& ledger = pool.ledger;
  // Its tenant's own soft bytes no guarantee protects from it.
  const uint64_t coming_bytes = ledger.missing().returning_bytes +
                                ledger.totals().lent_bytes -
                                account.LentBytes() + account.soft_bytes;
  return static_cast<int64_t>(ask.bytes) <=
             ledger.FreeBytes() + static_cast<int64_t>(coming_bytes) &&
         BeyondBytes(account, ask) <=
             std::max<int64_t>(ledger.SlackBytes(), 0) +
                 static_cast<int64_t>(ledger.missing().returning_bytes);
}

std::optional<Refusal> CheckNow(const PoolState& pool, const Account& account,
                                const Ask& ask, const Claims& claims,
                                uint64_t place) {
  const uint64_t limit_left_bytes =
      ask.restore ? account.RestoreLeftBytes() : account.LimitLeftBytes();
  if (ask.bytes > limit_left_bytes) {
    return Refusal{.reason = Reason::kTenantLimit,
                   .deficit_bytes = ask.bytes - limit_left_bytes};
  }
  const int64_t lacking_bytes = LackingBytes(pool, account, ask);
  if (lacking_bytes > 0) {
    return Refusal{.reason = Reason::kPoolExhausted,
                   .deficit_bytes = static_cast<uint64_t>(lacking_bytes)};
  }
  if (ask.bytes <= account.GuaranteeLeftBytes()) return std::nullopt;
  const int64_t beside_bytes =
      LackingBesideClaims(pool, account, ask, claims, place);
  if (beside_bytes <= 0) return std::nullopt;
  return Refusal{.reason = Reason::kPoolExhausted,
                 .deficit_bytes = static_cast<uint64_t>(beside_bytes),
                 .claimed = true};
}

}  // namespace gmb::quota
