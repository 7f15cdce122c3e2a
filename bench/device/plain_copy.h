#ifndef GMB_BENCH_DEVICE_PLAIN_COPY_H_
#define GMB_BENCH_DEVICE_PLAIN_COPY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "device/copy_engine.h"
#include "device/handle.h"

namespace gmb::bench {

// A program by itself: copies its own device memory to page-locked memory of
// its own and back. Measured in the same run.
class PlainCopy {
 public:
  virtual ~PlainCopy() = default;
  // Copies `bytes`, one buffer after the other, and waits.
  [[nodiscard]] virtual absl::StatusOr<absl::Duration> Run(
      device::CopyDirection direction, uint64_t bytes) = 0;
};

// cuMemcpy between cuMemAlloc and page-locked memory for a GPU, memcpy between
// two buffers for the host device; with buffers of this size.
[[nodiscard]] absl::StatusOr<std::unique_ptr<PlainCopy>> OpenPlainCopy(
    const device::DeviceInfo& info, uint64_t buffer_bytes);

}  // namespace gmb::bench

#endif  // GMB_BENCH_DEVICE_PLAIN_COPY_H_
