#ifndef GMB_BROKER_MACHINE_BACKING_PASS_H_
#define GMB_BROKER_MACHINE_BACKING_PASS_H_

#include <cstddef>
#include <optional>

#include "quota/units.h"

namespace gmb::broker {

// Which lease is to be copied ahead of need is found over several turns: how
// far that has come, and the best one so far.
struct BackingPass {
  quota::PoolId pool{};
  quota::TenantId tenant{};
  quota::LeaseId lease{};
  std::optional<quota::LeaseId> best;
  size_t seen = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_BACKING_PASS_H_
