#ifndef GMB_QUOTA_PENDING_GUARANTEES_H_
#define GMB_QUOTA_PENDING_GUARANTEES_H_

#include <cstdint>
#include <utility>

#include "absl/container/btree_map.h"
#include "quota/account.h"
#include "quota/units.h"

namespace gmb::quota {

// The accounts of a pool whose guarantees are not wholly in force yet, in the order
// in which they asked. An account has its place from it.
class PendingGuarantees {
 public:
  // By place.
  using Places = absl::btree_map<uint64_t, TenantId>;

  [[nodiscard]] const Places& places() const { return places_; }

  // After a change of the account: behind all others if it has come to wait.
  void Update(Account& account) {
    const bool pending =
        account.effective_bytes < account.requested.guarantee_bytes;
    if (pending == (account.pending_place != 0)) return;
    if (!pending) {
      Leave(account);
      return;
    }
    account.pending_place = ++last_place_;
    places_.emplace(account.pending_place, account.tenant);
  }
  // Does nothing for one that has no place.
  void Leave(Account& account) {
    if (account.pending_place == 0) return;
    places_.erase(std::exchange(account.pending_place, 0));
  }

 private:
  uint64_t last_place_ = 0;
  Places places_;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_PENDING_GUARANTEES_H_
