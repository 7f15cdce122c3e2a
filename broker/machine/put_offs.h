#ifndef GMB_BROKER_MACHINE_PUT_OFFS_H_
#define GMB_BROKER_MACHINE_PUT_OFFS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "broker/machine/lease.h"
#include "quota/units.h"

namespace gmb::broker {

// Acquires that are put off, and that the engine does not have until then: in
// time, and of each tenant on each pool, with what they ask for.
//
// A value, part of State.
class PutOffs {
 public:
  struct Sum {
    uint64_t requests = 0;
    uint64_t bytes = 0;
  };

  // `request.ask_again_at` must be set, and stay as it is until Remove.
  void Add(const PendingAcquire& request, quota::TenantId tenant);
  // Its session may have ended. It must be there.
  void Remove(const PendingAcquire& request);

  [[nodiscard]] size_t size() const { return in_time_.size(); }
  [[nodiscard]] bool empty() const { return in_time_.empty(); }
  // The one that is asked for first, and when; there must be one.
  [[nodiscard]] std::pair<quota::Instant, quota::RequestId> first() const {
    return *in_time_.begin();
  }
  [[nodiscard]] bool Has(const PendingAcquire& request) const;

  // At most so many, in the order in which they were first asked for, those
  // after `after`.
  [[nodiscard]] std::vector<quota::RequestId> Of(
      quota::TenantId tenant, quota::PoolId pool,
      std::optional<quota::RequestId> after, size_t most) const;
  [[nodiscard]] Sum SumOf(quota::TenantId tenant, quota::PoolId pool) const;
  [[nodiscard]] Sum SumOf(quota::PoolId pool) const;

 private:
  struct Group {
    absl::btree_set<quota::RequestId> requests;
    uint64_t bytes = 0;
  };

  using Owner = std::pair<quota::TenantId, quota::PoolId>;

  std::set<std::pair<quota::Instant, quota::RequestId>> in_time_;
  absl::btree_map<quota::RequestId, Owner> owners_;
  // Only of those that have any.
  std::map<Owner, Group> groups_;
  std::map<quota::PoolId, Sum> pools_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_PUT_OFFS_H_
