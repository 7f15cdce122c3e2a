#ifndef GMB_TESTS_DEVICE_PATTERN_KERNEL_H_
#define GMB_TESTS_DEVICE_PATTERN_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_context.h"
#include "tests/device/driver_of_programs.h"

namespace gmb::device {

// Fills device memory with a pattern, and counts the words that differ from it,
// at the speed of the memory. For one thread.
class PatternKernel {
 public:
  // On the GPU with this UUID. UNIMPLEMENTED on a driver that has no kernels
  // (the tests' own).
  [[nodiscard]] static absl::StatusOr<PatternKernel> Load(
      const std::string& uuid);
  PatternKernel(PatternKernel&& other) noexcept
      : context_(std::move(other.context_)),
        fill_(other.fill_),
        count_(other.count_),
        launch_(other.launch_),
        counter_(std::exchange(other.counter_, 0)) {}
  PatternKernel& operator=(PatternKernel&& other) = delete;
  ~PatternKernel();

  // All wait until it is done. `bytes` is a multiple of 8.
  [[nodiscard]] absl::Status Fill(void* memory, uint64_t bytes,
                                  uint64_t seed) const;
  [[nodiscard]] absl::StatusOr<uint64_t> CountWrong(const void* memory,
                                                    uint64_t bytes,
                                                    uint64_t seed) const;
  [[nodiscard]] absl::StatusOr<uint64_t> CountNonZero(const void* memory,
                                                      uint64_t bytes) const;

 private:
  explicit PatternKernel(std::shared_ptr<const CudaContext> context)
      : context_(std::move(context)) {}
  [[nodiscard]] absl::Status Find();
  [[nodiscard]] absl::Status Run(CUfunction kernel, CUdeviceptr memory,
                                 uint64_t bytes, uint64_t seed,
                                 uint64_t factor) const;
  // Words that are not (seed + index) * factor.
  [[nodiscard]] absl::StatusOr<uint64_t> Count(const void* memory,
                                               uint64_t bytes, uint64_t seed,
                                               uint64_t factor) const;

  std::shared_ptr<const CudaContext> context_;
  CUfunction fill_ = nullptr;
  CUfunction count_ = nullptr;
  decltype(&cuLaunchKernel) launch_ = nullptr;
  CUdeviceptr counter_ = 0;  // one word of device memory
};

}  // namespace gmb::device

#endif  // GMB_TESTS_DEVICE_PATTERN_KERNEL_H_
