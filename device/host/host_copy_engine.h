#ifndef GMB_DEVICE_HOST_HOST_COPY_ENGINE_H_
#define GMB_DEVICE_HOST_HOST_COPY_ENGINE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/copy_engine.h"

namespace gmb::device {

// Copies of the host device: by the processor, done when begun.
class HostCopyEngine final : public CopyEngine {
 public:
  [[nodiscard]] absl::StatusOr<void*> Map(const ShareableHandle& slab,
                                          uint64_t bytes) override;
  [[nodiscard]] absl::Status Unmap(void* slab, uint64_t bytes) override;
  [[nodiscard]] absl::Status Begin(CopyDirection direction, void* slab,
                                   void* host, uint64_t bytes) override;
  [[nodiscard]] absl::Status FinishOldest() override {
    return absl::OkStatus();
  }
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOST_HOST_COPY_ENGINE_H_
