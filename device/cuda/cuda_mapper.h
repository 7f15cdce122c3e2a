#ifndef GMB_DEVICE_CUDA_CUDA_MAPPER_H_
#define GMB_DEVICE_CUDA_CUDA_MAPPER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "device/cuda/cuda_context.h"
#include "device/mapper.h"

namespace gmb::device {

// The parts that the mappers of both CUDA kinds share: the primary context, and
// copies. Ranges share the context too, so they may outlive their mapper.
class CudaMapper : public Mapper {
 public:
  CudaMapper(DeviceInfo info, std::shared_ptr<const CudaContext> context)
      : info_(std::move(info)), context_(std::move(context)) {}

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] absl::Status Synchronize(
      absl::Span<const std::string> access) override;
  [[nodiscard]] absl::Status CopyToHost(void* to, const void* from_device,
                                        uint64_t bytes) override;
  [[nodiscard]] absl::Status CopyToDevice(void* to_device, const void* from,
                                          uint64_t bytes) override;
  [[nodiscard]] absl::Status Fill(void* device, uint8_t value,
                                  uint64_t bytes) override;

 protected:
  [[nodiscard]] const std::shared_ptr<const CudaContext>& context() const {
    return context_;
  }
  [[nodiscard]] const CudaDriver& driver() const { return context_->driver(); }

 private:
  const DeviceInfo info_;
  const std::shared_ptr<const CudaContext> context_;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_CUDA_MAPPER_H_
