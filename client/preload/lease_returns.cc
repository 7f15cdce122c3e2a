// `gmb run`: memory goes back.
#include "client/preload/lease_returns.h"

#include <optional>

#include "client/preload/program_gate.h"
#include "client/preload/the_memory.h"
#include "client/preload/virtual_memory.h"

namespace gmb::preload {

void LeaseReturns::GiveBack(const Block& block, Then then) {
  const std::optional<LeaseRange> whole = parts_.allocations.Give(block);
  if (!whole.has_value()) {
    ++count_;
  } else if (then == Then::kKeep && block.lease.has_value() && !whole->shared &&
             !ProgramGate::IsAway()) {
    parts_.kept.Keep(block.device, parts_.names.UuidOf(block.device), *whole);
  } else {
    Release(*whole);
  }
}

// Off the books first: once it is unmapped, its addresses may be another's.
void LeaseReturns::Release(const LeaseRange& lease) {
  if (lease.asked != 0) {
    parts_.broker.Forget(lease);
  } else if (lease.start == 0) {
    TheVirtualMemory(parts_.driver).GoBack(lease);
  } else {
    parts_.allocations.RemoveRange(lease);
    parts_.exports.Forget(lease);
    BrokerLink::Release(lease);
  }
  ++count_;
}

}  // namespace gmb::preload
