// Acquire: whether a request is granted, waits, or is refused.
#include "quota/admission.h"

#include <algorithm>

namespace gmb::quota {

Standing StandingOf(const Account& account) {
  return {.guarantee_left_bytes = account.GuaranteeLeftBytes(),
          .limit_left_bytes = account.LimitLeftBytes(),
          .restore_left_bytes = account.RestoreLeftBytes(),
          .hard_room_bytes = account.HardRoomBytes(),
          .borrowed_per_weight = static_cast<double>(account.BorrowedBytes()) /
                                 account.quota.weight};
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
      ask.hard ? ledger.requested_bytes() - quota.guarantee_bytes : 0;
  const uint64_t sum_bytes = own_bytes + others_bytes + ledger.lost_bytes();
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
  int64_t beyond = 0;  // bytes that the sum would have to take
  if (ask.hard) {
    beyond = bytes - static_cast<int64_t>(account.HardRoomBytes());
  }
  return std::max({not_free, std::max<int64_t>(beyond, 0) - slack_bytes, kept});
}

bool FitsNow(const PoolState& pool, const Account& account, const Ask& ask) {
  const uint64_t limit_left_bytes =
      ask.restore ? account.RestoreLeftBytes() : account.LimitLeftBytes();
  if (ask.bytes > limit_left_bytes) return false;
  if (LackingBytes(pool, account, ask) > 0) return false;
  return ask.bytes <= account.GuaranteeLeftBytes() ||
         !pool.queue.AnyWithinGuarantee();
}

std::optional<Refusal> CheckNow(const PoolState& pool, const Account& account,
                                const Ask& ask, Instant now) {
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
  const bool turn =
      ask.bytes <= account.GuaranteeLeftBytes() ||
      (!pool.queue.AnyWithinGuarantee() &&
       pool.queue.MayPass(account.tenant, StandingOf(account), now));
  if (turn) return std::nullopt;
  return Refusal{.reason = Reason::kPoolExhausted};
}

}  // namespace gmb::quota
