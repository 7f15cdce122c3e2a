#ifndef GMB_CLIENT_PRELOAD_VIRTUAL_SLABS_H_
#define GMB_CLIENT_PRELOAD_VIRTUAL_SLABS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/preload/driver.h"
#include "client/preload/virtual_handles.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// Tells the driver of the slabs that a handle of ours consists of. It has no
// books: its caller keeps them, and the order of the calls.
class VirtualSlabs {
 public:
  using Slab = VirtualHandle::Slab;

  // The driver outlives it.
  explicit VirtualSlabs(const Driver& driver) : driver_(driver) {}

  // All of them, or none.
  [[nodiscard]] CUresult Import(const int* fds, const uint64_t* slab_bytes,
                                size_t count, std::vector<Slab>* slabs) const;
  // Releases the driver's handles.
  void LetGo(const std::vector<Slab>& slabs) const;
  // One behind the other from `start` on; all of them, or none.
  [[nodiscard]] CUresult Map(CUdeviceptr start,
                             const std::vector<Slab>& slabs) const;
  // The same where they were mapped before, with the access that it had.
  [[nodiscard]] CUresult MapAgain(const VirtualMapping& mapping,
                                  const std::vector<Slab>& slabs) const;

 private:
  const Driver& driver_;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_VIRTUAL_SLABS_H_
