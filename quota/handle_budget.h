#ifndef GMB_QUOTA_HANDLE_BUDGET_H_
#define GMB_QUOTA_HANDLE_BUDGET_H_

#include <cstdint>

namespace gmb::quota {

// The handles of leases, of all tenants and pools together: how many are in use,
// and how many may be. Not thread-safe.
class HandleBudget {
 public:
  // A tenant's part of it.
  struct Share {
    uint32_t most = 0;
    uint64_t used = 0;
  };

  explicit HandleBudget(uint64_t most) : most_(most) {}

  [[nodiscard]] uint64_t used() const { return used_; }
  [[nodiscard]] bool Fit(const Share& share, uint32_t wanted) const {
    return share.used + wanted <= share.most && used_ + wanted <= most_;
  }
  // True when so many would not fit even if nothing else held any.
  [[nodiscard]] bool NeverFit(const Share& share, uint32_t wanted) const {
    return wanted > share.most || wanted > most_;
  }

  // Also more than fit: leases that are there are counted.
  void Take(Share& share, uint32_t count) {
    share.used += count;
    used_ += count;
  }
  void GiveBack(Share& share, uint32_t count) {
    share.used -= count;
    used_ -= count;
  }

 private:
  uint64_t most_;
  uint64_t used_ = 0;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_HANDLE_BUDGET_H_
