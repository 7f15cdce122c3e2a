#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compute.h"

namespace model_servers {

absl::StatusOr<std::unique_ptr<Compute>> MakeGpuCompute(
    const std::string& uuid) {
  return absl::FailedPreconditionError(
      absl::StrCat("the broker's device is ", uuid,
                   ", and this program was built without a CUDA compiler: "
                   "build it with nvcc, or use a broker with a host device"));
}

}  // namespace model_servers
