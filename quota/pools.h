// All pools, each with its books and those who wait for it.
#ifndef GMB_QUOTA_POOLS_H_
#define GMB_QUOTA_POOLS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "quota/admission.h"
#include "quota/event.h"
#include "quota/request.h"

namespace gmb::quota {

class Pools {
 public:
  // Null: there is none. A pool stays where it is.
  [[nodiscard]] PoolState* Find(PoolId id) {
    const auto it = table_.find(id);
    return it == table_.end() ? nullptr : it->second.get();
  }
  [[nodiscard]] const PoolState* Find(PoolId id) const {
    const auto it = table_.find(id);
    return it == table_.end() ? nullptr : it->second.get();
  }
  // Makes it where there is none.
  PoolState& Open(PoolId id, uint64_t granularity_bytes);
  [[nodiscard]] std::vector<PoolId> Ids() const;  // sorted
  // Calls `visit(id, pool)` in no order.
  template <typename Visitor>
  void ForEach(const Visitor& visit) const {
    for (const auto& [id, pool] : table_) {
      visit(id, static_cast<const PoolState&>(*pool));
    }
  }

  // Whether a change keeps the sum of the guarantees within the pool.
  [[nodiscard]] std::optional<Ledger::TargetRefusal> CheckTarget(
      const PoolSet& change) const;
  [[nodiscard]] std::optional<Refusal> CheckQuota(const QuotaSet& change) const;
  // The tenant's leased and unreturned bytes, in all pools.
  [[nodiscard]] uint64_t HeldBytes(TenantId tenant) const;
  // Of a request whose tenant has an account in each of its pools: the same as
  // of its parts, for all of them.
  [[nodiscard]] bool IsWithinGuarantee(const Request& request) const;
  [[nodiscard]] bool IsCovered(const Request& request) const;

 private:
  // Copied with the table, and where it was when the table has moved.
  struct PlacedPool : std::unique_ptr<PoolState> {
    PlacedPool() = default;
    PlacedPool(const PlacedPool& other)
        : unique_ptr(other == nullptr ? nullptr
                                      : std::make_unique<PoolState>(*other)) {}
    PlacedPool(PlacedPool&&) noexcept = default;
    PlacedPool& operator=(const PlacedPool&) = delete;
    PlacedPool& operator=(PlacedPool&&) noexcept = default;
    using unique_ptr::operator=;
  };

  absl::flat_hash_map<PoolId, PlacedPool> table_;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_POOLS_H_
