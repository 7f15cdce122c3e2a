#ifndef GMB_DEVICE_COPY_ENGINE_H_
#define GMB_DEVICE_COPY_ENGINE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/handle.h"

namespace gmb::device {

enum class CopyDirection {
  kOut,  // from a slab to host memory
  kIn,   // from host memory to a slab
};

// The part of a copier that differs by kind of device: the broker's own mapping
// of a slab, and copies that run by themselves. Used by one thread; copies are
// finished in the order in which they were begun. Errors as in allocator.h.
class CopyEngine {
 public:
  virtual ~CopyEngine() = default;

  // Maps a slab for this process, and lets go of the handle in every case.
  [[nodiscard]] virtual absl::StatusOr<void*> Map(const ShareableHandle& slab,
                                                  uint64_t bytes) = 0;
  // Every copy begun on it has been finished. After an error it may be mapped
  // still, and its memory not be given back before the process ends.
  [[nodiscard]] virtual absl::Status Unmap(void* slab, uint64_t bytes) = 0;

  // Begins a copy. After an error this copy does not touch memory any more.
  [[nodiscard]] virtual absl::Status Begin(CopyDirection direction, void* slab,
                                           void* host, uint64_t bytes) = 0;
  // Waits for the oldest copy that is not finished. After an error no copy
  // begun before it, nor itself, touches memory any more; what it copied is
  // unknown.
  [[nodiscard]] virtual absl::Status FinishOldest() = 0;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_COPY_ENGINE_H_
