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

#include "absl/container/node_hash_map.h"
#include "quota/account.h"
#include "quota/missing.h"
#include "quota/pending_guarantees.h"
#include "quota/tenant_quota.h"
#include "quota/units.h"

namespace gmb::quota {

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
  // Of leases that are there: see Account::back_in_part_bytes.
  void SetBackInPart(Account& account, uint64_t bytes);
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
  const Totals& totals() const { return totals_; }
  bool IsShrinking() const { return capacity_bytes_ > target_bytes_; }

  // The bytes that hard leases can borrow: capacity - missing - committed.
  // Below 0 when missing or unreturned bytes, or leases that became hard, have
  // broken the sum.
  int64_t SlackBytes() const {
    return static_cast<int64_t>(capacity_bytes_) -
           static_cast<int64_t>(missing_.bytes + totals_.committed_bytes);
  }
  // The bytes that are there, kept for a guarantee or not.
  int64_t FreeBytes() const {
    return static_cast<int64_t>(capacity_bytes_) -
           static_cast<int64_t>(missing_.bytes + totals_.ResidentBytes());
  }

 private:
  void Touch(Account& account);
  // Takes the account out of the sums, lets `change` alter it, and puts it
  // back.
  template <typename Change>
  void Alter(Account& account, const Change& change);
  void Resolve(Account& account);
  void CoverHeld();

  const uint64_t granularity_bytes_;
  uint64_t target_bytes_ = 0;
  uint64_t capacity_bytes_ = 0;
  Missing missing_;
  Totals totals_;
  absl::node_hash_map<TenantId, Account> accounts_;
  PendingGuarantees pending_;
  std::vector<TenantId> touched_;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_LEDGER_H_
