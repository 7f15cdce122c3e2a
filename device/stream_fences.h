#ifndef GMB_DEVICE_STREAM_FENCES_H_
#define GMB_DEVICE_STREAM_FENCES_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gmb::device {

// A point in a stream's work. Thread-safe.
class StreamFence {
 public:
  virtual ~StreamFence() = default;

  // Whether the stream's work up to here has ended. Does not wait. An error of
  // the driver says that this cannot be known any more.
  [[nodiscard]] virtual absl::StatusOr<bool> Reached() = 0;
  // Waits until it has.
  [[nodiscard]] virtual absl::Status Wait() = 0;
};

// Makes fences in the streams that use one device's memory. A stream is what
// the device's programs call it: a CUstream (cudaStream_t), of any context and
// of other devices too, null for the device's legacy default stream; on `host`
// any value. Thread-safe. Must not be called while a stream of the device is
// captured.
class StreamFences {
 public:
  virtual ~StreamFences() = default;

  // INVALID_ARGUMENT when this is no stream. The stream's context outlives the
  // fence.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<StreamFence>> Record(
      void* stream) = 0;
  // Waits until all work has ended that this process has submitted to the
  // device in its primary context.
  [[nodiscard]] virtual absl::Status WaitForAll() = 0;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_STREAM_FENCES_H_
