#ifndef GMB_CLIENT_HEAP_CHUNK_SOURCE_H_
#define GMB_CLIENT_HEAP_CHUNK_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gmb::internal {

// The memory of one chunk; goes back when it is destroyed, without a wait for
// the owner's answer.
class ChunkMemory {
 public:
  virtual ~ChunkMemory() = default;

  [[nodiscard]] virtual void* data() const = 0;
  [[nodiscard]] virtual uint64_t size_bytes() const = 0;
  // Goes back now, and the owner knows when this returns, also of what was
  // destroyed before. Waits until the device has done what was submitted to it.
  [[nodiscard]] virtual absl::Status Release() = 0;
};

// Where a heap's chunks come from. Thread-safe.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;

  // `bytes` and what it gives, which may be more, are multiples of kBlockBytes,
  // and its address is.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<ChunkMemory>> Acquire(
      uint64_t bytes, absl::Duration wait) = 0;
  // The same without a wait, and up to `ahead` more of as many bytes, of what is
  // free now: all in one question.
  [[nodiscard]] virtual absl::StatusOr<
      std::vector<std::unique_ptr<ChunkMemory>>>
  AcquireWithMore(uint64_t bytes, size_t ahead) = 0;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_CHUNK_SOURCE_H_
