#ifndef GMB_BROKER_CORE_KEEPER_H_
#define GMB_BROKER_CORE_KEEPER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "broker/machine/slab.h"
#include "device/handle.h"

namespace gmb::broker {

// A stored handle, shared by the keeper and the frames that still carry it.
using SharedHandle = std::shared_ptr<const device::ShareableHandle>;

// Keeps every slab's shareable handle from its creation to its destruction,
// so that memory outlives the process that created it. Put is acknowledged
// before a slab may be journaled, sent or announced.
//
// Thread-safe. Put and Remove may block (a process of its own answers them in
// the restartable deployment): never call them under the core's lock.
class Keeper {
 public:
  virtual ~Keeper() = default;

  [[nodiscard]] virtual absl::Status Put(SlabId slab,
                                         device::ShareableHandle handle) = 0;
  // Closes the keeper's handle. Unknown slabs are NOT_FOUND.
  [[nodiscard]] virtual absl::Status Remove(SlabId slab) = 0;
  // Null when unknown. Never blocks.
  [[nodiscard]] virtual SharedHandle Get(SlabId slab) const = 0;
  [[nodiscard]] virtual std::vector<SlabId> List() const = 0;
  // It lives and does not answer: it still has what it had, also what is
  // removed, so that bytes destroyed now do not come back. Never blocks.
  [[nodiscard]] virtual bool KeepsRemoved() const { return false; }
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_KEEPER_H_
