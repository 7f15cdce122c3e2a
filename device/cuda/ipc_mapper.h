#ifndef GMB_DEVICE_CUDA_IPC_MAPPER_H_
#define GMB_DEVICE_CUDA_IPC_MAPPER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/cuda/cuda_mapper.h"

namespace gmb::device {

// Opens slabs of an ipc device. The driver chooses the address at each Map, so
// a range holds one slab and has no address before. Never works in the process
// that exported the slab.
class IpcMapper final : public CudaMapper {
 public:
  using CudaMapper::CudaMapper;

  // INVALID_ARGUMENT when `access` names another device.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<MappedRange>> Reserve(
      uint64_t bytes, absl::Span<const std::string> access,
      Protection protection) override;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_IPC_MAPPER_H_
