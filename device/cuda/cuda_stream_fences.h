#ifndef GMB_DEVICE_CUDA_CUDA_STREAM_FENCES_H_
#define GMB_DEVICE_CUDA_CUDA_STREAM_FENCES_H_

#include <memory>

#include "device/cuda/cuda_context.h"
#include "device/stream_fences.h"

namespace gmb::device {

// Fences are events without times in a GPU's primary context; events that are
// not in use are kept for the next fence.
class CudaStreamFences final : public StreamFences {
 public:
  explicit CudaStreamFences(std::shared_ptr<const CudaContext> context);
  ~CudaStreamFences() override;

  absl::StatusOr<std::unique_ptr<StreamFence>> Record(void* stream) override;

 private:
  class Events;
  class Fence;

  const std::shared_ptr<Events> events_;  // its fences' too
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_CUDA_STREAM_FENCES_H_
