#ifndef GMB_CLIENT_LEASE_EARLY_MAPPING_H_
#define GMB_CLIENT_LEASE_EARLY_MAPPING_H_

#include <cstdint>
#include <vector>

#include "device/handle.h"

namespace gmb::internal {

// All slabs of a lease whose grant is still to come.
struct EarlySlabs {
  std::vector<device::ShareableHandle> handles;
  std::vector<uint64_t> slab_bytes;
};

// Maps the slabs of a lease whose grant is still on its way, on the thread
// that asks for it.
class EarlyMapping {
 public:
  // The request is on its way: do what needs no slabs.
  virtual void Prepare() = 0;
  virtual void Map(EarlySlabs slabs) = 0;
  // The grant did not come: unmap. The lease is given back afterwards, or
  // another one's slabs are mapped.
  virtual void Undo() = 0;

 protected:
  ~EarlyMapping() = default;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_LEASE_EARLY_MAPPING_H_
