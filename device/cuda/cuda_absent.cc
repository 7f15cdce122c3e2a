#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device/cuda/cuda_devices.h"
#include "device/devices.h"
#include "device/hostpool/page_locker.h"

// Stands in for the CUDA devices in a build without CUDA headers.

namespace gmb::device {
namespace {

constexpr absl::string_view kProblem =
    "this build has no CUDA devices: install the CUDA toolkit's headers "
    "(cuda.h) and build again, or use a host device";

}  // namespace

absl::StatusOr<std::unique_ptr<Allocator>> OpenVmmAllocator(std::string_view) {
  return absl::FailedPreconditionError(kProblem);
}

absl::StatusOr<std::unique_ptr<Allocator>> OpenIpcAllocator(std::string_view) {
  return absl::FailedPreconditionError(kProblem);
}

absl::StatusOr<std::unique_ptr<Mapper>> OpenCudaMapper(const DeviceInfo&) {
  return absl::FailedPreconditionError(kProblem);
}

absl::StatusOr<std::unique_ptr<CopyEngine>> OpenCudaCopyEngine(
    const DeviceInfo&, unsigned) {
  return absl::FailedPreconditionError(kProblem);
}

absl::StatusOr<std::unique_ptr<StreamFences>> OpenCudaStreamFences(
    const DeviceInfo&) {
  return absl::FailedPreconditionError(kProblem);
}

absl::StatusOr<std::unique_ptr<PageLocker>> OpenCudaPageLocker(
    absl::string_view) {
  return absl::FailedPreconditionError(kProblem);
}

absl::StatusOr<std::vector<ProcessUsage>> DeviceProcesses(const std::string&) {
  return absl::FailedPreconditionError(kProblem);
}

absl::StatusOr<uint64_t> DeviceListedBytes(const std::string&) {
  return absl::FailedPreconditionError(kProblem);
}

absl::StatusOr<uint64_t> DeviceUsedBytes(const std::string&) {
  return absl::FailedPreconditionError(kProblem);
}

CudaProbe ProbeCuda() {
  CudaProbe probe;
  probe.problem = std::string(kProblem);
  return probe;
}

}  // namespace gmb::device
