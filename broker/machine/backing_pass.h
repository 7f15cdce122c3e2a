#ifndef GMB_BROKER_MACHINE_BACKING_PASS_H_
#define GMB_BROKER_MACHINE_BACKING_PASS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "quota/units.h"

namespace gmb::broker {

// Which leases are to be copied ahead of need is found over several turns: how
// far the looking has come, and what was found.
struct BackingPass {
  quota::PoolId pool{};
  quota::TenantId tenant{};
  quota::LeaseId lease{};
  size_t seen = 0;
  bool found = false;
  std::vector<quota::LeaseId> next;       // the likeliest victim last
  std::optional<quota::LeaseId> in_hand;  // is being copied: one at a time
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_BACKING_PASS_H_
