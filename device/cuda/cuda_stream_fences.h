#ifndef GMB_DEVICE_CUDA_CUDA_STREAM_FENCES_H_
#define GMB_DEVICE_CUDA_CUDA_STREAM_FENCES_H_

#include <memory>

#include "device/cuda/cuda_context.h"
#include "device/stream_fences.h"

namespace gmb::device {

// Fences are events without times in a GPU's primary context, which are kept for
// the next fence when they are not in use. In a stream of another context (of
// another GPU, or of one that the program has made) they are events of that
// context, each for one fence.
class CudaStreamFences final : public StreamFences {
 public:
  explicit CudaStreamFences(std::shared_ptr<const CudaContext> context);
  ~CudaStreamFences() override;

  absl::StatusOr<std::unique_ptr<StreamFence>> Record(void* stream) override;
  absl::Status WaitForAll() override;

 private:
  class Events;
  class Fence;

  absl::StatusOr<std::unique_ptr<StreamFence>> RecordInItsContext(
      CUstream stream);

  const std::shared_ptr<Events> events_;  // its fences' too
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_CUDA_STREAM_FENCES_H_
