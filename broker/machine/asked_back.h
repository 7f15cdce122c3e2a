#ifndef GMB_BROKER_MACHINE_ASKED_BACK_H_
#define GMB_BROKER_MACHINE_ASKED_BACK_H_

#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "quota/units.h"

namespace gmb::broker {

// Which shared leases a Restore was the last to ask for: Lease::asked_back, the
// other way round. Recalls changes the two together.
//
// A value, part of State.
class AskedBack {
 public:
  // The lease was asked for by `before`, and is by `request` from now on.
  void Move(quota::LeaseId lease, std::optional<quota::RequestId> before,
            std::optional<quota::RequestId> request);
  // By their ids.
  [[nodiscard]] std::vector<quota::LeaseId> By(quota::RequestId request) const;

 private:
  absl::btree_map<quota::RequestId, absl::btree_set<quota::LeaseId>> leases_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_ASKED_BACK_H_
