// Loads the NVIDIA driver at run time.
#include "device/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "device/cuda/cuda_status.h"

namespace gmb::device {

// Some lines of a macro for each function of the driver.
// NOLINTNEXTLINE(readability-function-size)
absl::StatusOr<const CudaDriver*> CudaDriver::Load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the NVIDIA driver's library cannot be loaded: install the driver "
        "(Debian: libcuda1), or give the container its libraries, or use a "
        "host device: ",
        dlerror()));
  }
  std::unique_ptr<CudaDriver> driver(new CudaDriver);
#define GMB_CUDA_LOAD(name)                                                  \
  driver->name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  if (driver->name == nullptr) {                                             \
    return absl::FailedPreconditionError(                                    \
        "the NVIDIA driver is older than CUDA 11.4: install a newer one: "   \
        "libcuda.so.1 lacks " #name);                                        \
  }
  GMB_CUDA_FUNCTIONS(GMB_CUDA_LOAD)
#undef GMB_CUDA_LOAD
  GMB_RETURN_IF_ERROR(GMB_CUDA(*driver, cuInit, 0));
  return driver.release();  // lives as long as the process
}

absl::StatusOr<const CudaDriver*> CudaDriver::Get() {
  static base::Mutex& mu = *new base::Mutex;
  static const CudaDriver* loaded ABSL_GUARDED_BY(mu) = nullptr;
  static pid_t loaded_by ABSL_GUARDED_BY(mu) = 0;
  const base::MutexLock lock(&mu);
  if (loaded == nullptr) {
    GMB_ASSIGN_OR_RETURN(loaded, Load());
    loaded_by = getpid();
  }
  if (loaded_by != getpid()) {
    return absl::FailedPreconditionError(
        "CUDA does not work in a forked child: start the program with exec");
  }
  return loaded;
}

absl::Status CudaDriver::Check(CUresult result, absl::string_view call) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  return CudaStatus(result, call, name == nullptr ? "unknown error" : name);
}

}  // namespace gmb::device
