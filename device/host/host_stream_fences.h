#ifndef GMB_DEVICE_HOST_HOST_STREAM_FENCES_H_
#define GMB_DEVICE_HOST_HOST_STREAM_FENCES_H_

#include <memory>

#include "device/stream_fences.h"

namespace gmb::device {

// Host memory is used by host code, which has ended when it frees: every fence
// is reached at once.
class HostStreamFences final : public StreamFences {
 public:
  absl::StatusOr<std::unique_ptr<StreamFence>> Record(void* stream) override;
  absl::Status WaitForAll() override { return absl::OkStatus(); }
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOST_HOST_STREAM_FENCES_H_
