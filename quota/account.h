// One tenant in the books of a pool, and the sums over all tenants of it.
#ifndef GMB_QUOTA_ACCOUNT_H_
#define GMB_QUOTA_ACCOUNT_H_

#include <algorithm>
#include <cstdint>

#include "quota/tenant_quota.h"
#include "quota/units.h"

namespace gmb::quota {

// One tenant in one pool. Changed by the Ledger alone.
struct Account {
  TenantId tenant;
  TenantQuota quota;        // as it was asked for
  ResolvedQuota requested;  // the same in bytes
  // The guarantee in force; at least min(requested, hard), unless others'
  // promises are broken: see CoverHeld.
  uint64_t effective_bytes = 0;
  uint64_t leased_bytes = 0;
  uint64_t evicted_bytes = 0;  // of the leased ones, not on the device
  uint64_t soft_bytes = 0;     // of the leased ones, on the device and not hard
  uint64_t unreturned_bytes = 0;
  // Of those on the device, what has come back for Restores whose rest still
  // waits: it does not cost them their turn.
  uint64_t back_in_part_bytes = 0;
  uint64_t leases = 0;
  uint64_t handles = 0;
  // In the order of guarantees still to come; 0: not in it.
  uint64_t pending_place = 0;
  // The caller was told PENDING and not yet APPLIED.
  bool quota_pending = false;
  bool budget_changed = false;  // since the changes were last taken
  bool touched = false;         // listed for TakeTouched

  // On the device.
  uint64_t ResidentBytes() const {
    return leased_bytes - evicted_bytes + unreturned_bytes;
  }
  // Of these, the bytes that cannot be taken by force.
  uint64_t HardBytes() const { return ResidentBytes() - soft_bytes; }
  // Of the guarantee that was asked for, what hard bytes hold.
  uint64_t CoveredBytes() const {
    return std::min(requested.guarantee_bytes, HardBytes());
  }
  uint64_t ClaimBytes() const { return std::max(effective_bytes, HardBytes()); }
  // Of the claim, what it would not be without the unreturned bytes: where the
  // guarantee in force has room for them, they break nobody's promise.
  uint64_t UnreturnedClaimBytes() const {
    return ClaimBytes() -
           std::max(effective_bytes, HardBytes() - unreturned_bytes);
  }
  uint64_t BorrowedBytes() const {
    return ResidentBytes() -
           std::min(ResidentBytes(), requested.guarantee_bytes);
  }
  // Of these, the bytes that its turn among those that borrow goes by.
  uint64_t TurnBytes() const {
    return BorrowedBytes() - std::min(BorrowedBytes(), back_in_part_bytes);
  }
  // Soft bytes above the guarantee in force: what may be taken from this tenant
  // so that others can borrow.
  uint64_t LentBytes() const {
    return std::min(soft_bytes, ResidentBytes() -
                                    std::min(ResidentBytes(), effective_bytes));
  }
  uint64_t OverLimitBytes() const {
    const uint64_t bytes = leased_bytes - evicted_bytes;
    return bytes - std::min(bytes, requested.limit_bytes);
  }
  // The bytes that the guarantee in force still allows, and those that the
  // limit does. Unreturned bytes count against the limit: otherwise a tenant
  // could keep memory that it released and lease as much again.
  uint64_t GuaranteeLeftBytes() const {
    return effective_bytes - std::min(effective_bytes, ResidentBytes());
  }
  uint64_t LimitLeftBytes() const {
    return requested.limit_bytes -
           std::min(requested.limit_bytes, leased_bytes + unreturned_bytes);
  }
  // How much of the evicted bytes may still come back: they were leased before.
  uint64_t RestoreLeftBytes() const {
    return requested.limit_bytes -
           std::min(requested.limit_bytes, ResidentBytes());
  }
  // Hard bytes that cost the sum nothing: the guarantee covers them.
  uint64_t HardRoomBytes() const { return ClaimBytes() - HardBytes(); }
  // Bytes until the quota is in force: of the guarantee still to come, or above
  // the limit.
  uint64_t PendingBytes() const {
    return requested.guarantee_bytes - effective_bytes + OverLimitBytes();
  }
};

// The sums over all accounts of a pool. Changed by the Ledger alone.
struct Totals {
  uint64_t leased_bytes = 0;
  uint64_t unreturned_bytes = 0;
  uint64_t evicted_bytes = 0;
  uint64_t soft_bytes = 0;
  uint64_t lent_bytes = 0;
  uint64_t requested_bytes = 0;  // of the guarantees
  uint64_t committed_bytes = 0;  // of the claims
  uint64_t unreturned_claim_bytes = 0;
  uint64_t leases = 0;
  uint64_t handles = 0;
  uint64_t uncovered = 0;  // accounts that hold more than is in force

  uint64_t ResidentBytes() const {
    return leased_bytes - evicted_bytes + unreturned_bytes;
  }
  void Add(const Account& account) {
    leased_bytes += account.leased_bytes;
    unreturned_bytes += account.unreturned_bytes;
    evicted_bytes += account.evicted_bytes;
    soft_bytes += account.soft_bytes;
    lent_bytes += account.LentBytes();
    requested_bytes += account.requested.guarantee_bytes;
    committed_bytes += account.ClaimBytes();
    unreturned_claim_bytes += account.UnreturnedClaimBytes();
    leases += account.leases;
    handles += account.handles;
    if (account.effective_bytes < account.CoveredBytes()) ++uncovered;
  }
  void Take(const Account& account) {
    leased_bytes -= account.leased_bytes;
    unreturned_bytes -= account.unreturned_bytes;
    evicted_bytes -= account.evicted_bytes;
    soft_bytes -= account.soft_bytes;
    lent_bytes -= account.LentBytes();
    requested_bytes -= account.requested.guarantee_bytes;
    committed_bytes -= account.ClaimBytes();
    unreturned_claim_bytes -= account.UnreturnedClaimBytes();
    leases -= account.leases;
    handles -= account.handles;
    if (account.effective_bytes < account.CoveredBytes()) --uncovered;
  }
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_ACCOUNT_H_
