#ifndef GMB_BENCH_RECLAIM_NEIGHBOUR_KERNEL_H_
#define GMB_BENCH_RECLAIM_NEIGHBOUR_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_context.h"
#include "tests/device/driver_of_programs.h"

namespace gmb::bench {

// A kernel that keeps a GPU busy for about as long as it is told.
class NeighbourKernel {
 public:
  // `name`: "fma" computes in registers, "copy" streams through the memory,
  // from its first half to its second.
  [[nodiscard]] static absl::StatusOr<NeighbourKernel> Load(
      const std::string& name, const std::string& uuid, void* memory,
      uint64_t bytes);

  // Launches it and waits.
  [[nodiscard]] absl::Status Run() const;
  // Chooses how often it repeats its work, so that Run takes about so long.
  [[nodiscard]] absl::Status Calibrate(double seconds);

 private:
  NeighbourKernel(std::shared_ptr<const device::CudaContext> context,
                  void* memory, uint64_t bytes)
      : context_(std::move(context)), memory_(memory), bytes_(bytes) {}
  [[nodiscard]] absl::Status Find(const std::string& name);

  std::shared_ptr<const device::CudaContext> context_;
  void* memory_;
  uint64_t bytes_;
  CUfunction kernel_ = nullptr;
  decltype(&cuLaunchKernel) launch_ = nullptr;
  uint32_t repeats_ = 1;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_NEIGHBOUR_KERNEL_H_
