#ifndef GMB_DEVICE_CUDA_VMM_MAPPER_H_
#define GMB_DEVICE_CUDA_VMM_MAPPER_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "device/cuda/cuda_mapper.h"

namespace gmb::device {

// Maps slabs of a vmm device, one behind the other, into a reserved range of
// device addresses that stays the same for the range's life.
class VmmMapper final : public CudaMapper {
 public:
  using CudaMapper::CudaMapper;

  // FAILED_PRECONDITION when a device of `access` cannot reach this one's
  // memory, NOT_FOUND when this process cannot see it.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<MappedRange>> Reserve(
      uint64_t bytes, absl::Span<const std::string> access,
      Protection protection) override;

 private:
  // The GPU of that UUID, which can reach this one's memory. The driver is asked
  // about each once.
  [[nodiscard]] absl::StatusOr<CUdevice> FindPeer(const std::string& uuid);

  base::Mutex mu_;
  std::map<std::string, CUdevice> peers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_CUDA_VMM_MAPPER_H_
