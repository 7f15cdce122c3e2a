// The books of one pool: what each tenant may have and has, and the sums over
// all of them.
//
// It keeps the sums incrementally and decides nothing about requests. Not
// thread-safe.
#ifndef GMB_QUOTA_LEDGER_H_
#define GMB_QUOTA_LEDGER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/node_hash_map.h"
#include "quota/missing.h"
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
  uint64_t BorrowedBytes() const {
    return ResidentBytes() -
           std::min(ResidentBytes(), requested.guarantee_bytes);
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

class Ledger {
 public:
  explicit Ledger(uint64_t granularity_bytes)
      : granularity_bytes_(granularity_bytes) {}

  // Whether a change keeps the sum of the guarantees within the pool.
  std::optional<Refusal> CheckQuota(TenantId tenant,
                                    const TenantQuota& quota) const;
  struct TargetRefusal {
    Refusal refusal;
    // With kBadRequest: the tenant whose guarantee would be above its limit.
    TenantId tenant;
  };
  std::optional<TargetRefusal> CheckTarget(uint64_t target_bytes) const;

  // Changes that were checked. The target is a multiple of the granularity.
  void SetTarget(uint64_t target_bytes);
  void SetQuota(TenantId tenant, const TenantQuota& quota);

  // `returning_bytes` of them come back by themselves.
  void SetMissing(uint64_t missing_bytes, uint64_t returning_bytes = 0) {
    missing_ = {.bytes = missing_bytes,
                .returning_bytes = std::min(returning_bytes, missing_bytes)};
  }
  void SetUnreturned(TenantId tenant, uint64_t unreturned_bytes);
  // Where a lease's bytes are and whether they can be taken.
  enum class Place { kHard, kSoft, kEvicted };
  void AddLease(Account& account, uint64_t bytes, uint32_t handles,
                Place place);
  void RemoveLease(Account& account, uint64_t bytes, uint32_t handles,
                   Place place);
  void MoveLease(Account& account, uint64_t bytes, Place from, Place to);
  // The account must hold nothing.
  void RemoveAccount(TenantId tenant);

  // Before leases are added that are there, whatever the quotas are by now: what
  // is left of the pool is shared out anew by the next Settle.
  void WithdrawGuarantees();
  // The pool holds what it has been given, however small it is to be.
  void GrowToWhatIsHeld();

  // Puts freed bytes where operators wanted them, before anybody borrows them:
  // first into a pending shrink, then into pending guarantees in the order they
  // were asked for.
  void Settle();

  // The accounts that have changed since the last call. Valid until the next
  // change.
  std::vector<Account*> TakeTouched();

  Account* Find(TenantId tenant);
  const Account* Find(TenantId tenant) const;
  // Sorted by tenant.
  std::vector<const Account*> Accounts() const;

  uint64_t granularity_bytes() const { return granularity_bytes_; }
  uint64_t target_bytes() const { return target_bytes_; }
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  const Missing& missing() const { return missing_; }
  uint64_t leased_bytes() const { return leased_bytes_; }
  uint64_t unreturned_bytes() const { return unreturned_bytes_; }
  uint64_t evicted_bytes() const { return evicted_bytes_; }
  uint64_t soft_bytes() const { return soft_bytes_; }
  uint64_t lent_bytes() const {
    return lent_bytes_;
  }  // sum over tenants of LentBytes
  uint64_t ResidentBytes() const {
    return leased_bytes_ - evicted_bytes_ + unreturned_bytes_;
  }
  bool IsShrinking() const { return capacity_bytes_ > target_bytes_; }
  uint64_t requested_bytes() const {
    return requested_bytes_;
  }  // sum of the guarantees
  uint64_t committed_bytes() const {
    return committed_bytes_;
  }  // sum of the claims
  uint64_t leases() const { return leases_; }
  uint64_t handles() const { return handles_; }

  // The bytes that hard leases can borrow: capacity - missing - committed.
  // Below 0 when missing or unreturned bytes, or leases that became hard, have
  // broken the sum.
  int64_t SlackBytes() const {
    return static_cast<int64_t>(capacity_bytes_) -
           static_cast<int64_t>(missing_.bytes + committed_bytes_);
  }
  // The bytes that are there, kept for a guarantee or not.
  int64_t FreeBytes() const {
    return static_cast<int64_t>(capacity_bytes_) -
           static_cast<int64_t>(missing_.bytes + ResidentBytes());
  }

 private:
  Account& FindOrAdd(TenantId tenant);
  void Touch(Account& account);
  void AddToSums(const Account& account);
  void TakeFromSums(const Account& account);
  // Takes the account out of the sums, lets `change` alter it, and puts it
  // back.
  template <typename Change>
  void Alter(Account& account, const Change& change);
  void Resolve(Account& account);
  void KeepPlace(Account& account);
  void CoverHeld();

  const uint64_t granularity_bytes_;
  uint64_t target_bytes_ = 0;
  uint64_t capacity_bytes_ = 0;
  Missing missing_;
  uint64_t leased_bytes_ = 0;
  uint64_t unreturned_bytes_ = 0;
  uint64_t evicted_bytes_ = 0;
  uint64_t soft_bytes_ = 0;
  uint64_t lent_bytes_ = 0;
  uint64_t requested_bytes_ = 0;
  uint64_t committed_bytes_ = 0;
  uint64_t leases_ = 0;
  uint64_t handles_ = 0;
  uint64_t uncovered_ = 0;  // accounts that hold more than is in force
  uint64_t last_place_ = 0;
  absl::node_hash_map<TenantId, Account> accounts_;
  absl::btree_map<uint64_t, TenantId> pending_;  // by place
  std::vector<TenantId> touched_;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_LEDGER_H_
