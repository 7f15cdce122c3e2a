// After a release: free memory of a GPU, without a CUDA context.
#include "device/cuda/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "base/status_macros.h"

namespace gmb::device::nvml {
namespace {

// NVML's header does not come with the CUDA toolkit's, so the little that is
// used is declared here, after nvml.h of CUDA 12 and 13 (its binary interface
// is stable: names carry a version instead of changing).
using Device = struct DeviceTag*;

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kDriverNotLoaded = 9;
constexpr int kGpuIsLost = 15;
constexpr int kLibraryMismatch = 18;

struct MemoryV1 {  // nvmlMemory_t
  unsigned long long total, free, used;
};

struct MemoryV2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | (2U << 24);

struct ProcessInfo {  // nvmlProcessInfo_v2_t, also what the _v3 call fills in
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr unsigned long long kNotAvailable = ~0ULL;

// Both lists of processes are asked for so.
using ListProcesses = int(Device, unsigned*, ProcessInfo*);

struct Library {
  int (*nvmlInit_v2)();
  const char* (*nvmlErrorString)(int);
  int (*nvmlSystemGetDriverVersion)(char*, unsigned);
  int (*nvmlDeviceGetHandleByUUID)(const char*, Device*);
  int (*nvmlDeviceGetMemoryInfo)(Device, MemoryV1*);
  int (*nvmlDeviceGetMemoryInfo_v2)(Device, MemoryV2*);  // null before 510
  // Null before 510.
  ListProcesses* nvmlDeviceGetComputeRunningProcesses_v3;
  ListProcesses* nvmlDeviceGetGraphicsRunningProcesses_v3;
};

absl::Status Check(const Library& library, int result, absl::string_view call) {
  if (result == kSuccess) return absl::OkStatus();
  const std::string message =
      absl::StrCat(call, ": ", library.nvmlErrorString(result));
  switch (result) {
    case kNoPermission:
      return absl::PermissionDeniedError(message);
    case kInvalidArgument:  // a UUID that is no physical GPU's
    case kNotFound:
      return absl::NotFoundError(message);
    case kGpuIsLost:
      return absl::UnavailableError(message);
    case kNotSupported:
    case kDriverNotLoaded:
      return absl::FailedPreconditionError(message);
    case kLibraryMismatch:
      return absl::FailedPreconditionError(absl::StrCat(
          "libnvidia-ml and the kernel driver differ in version: reload the "
          "driver: ",
          message));
    default:
      return absl::InternalError(message);
  }
}

template <typename Function>
bool Find(void* handle, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(handle, name));
  return *function != nullptr;
}

absl::StatusOr<const Library*> Load() {
  void* const handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "NVML is missing: install it with the driver, or give the container "
        "the \"utility\" capability: ",
        dlerror()));
  }
  auto library = std::make_unique<Library>();
  if (!Find(handle, "nvmlInit_v2", &library->nvmlInit_v2) ||
      !Find(handle, "nvmlErrorString", &library->nvmlErrorString) ||
      !Find(handle, "nvmlSystemGetDriverVersion",
            &library->nvmlSystemGetDriverVersion) ||
      !Find(handle, "nvmlDeviceGetHandleByUUID",
            &library->nvmlDeviceGetHandleByUUID) ||
      !Find(handle, "nvmlDeviceGetMemoryInfo",
            &library->nvmlDeviceGetMemoryInfo)) {
    return absl::FailedPreconditionError("NVML lacks functions we need");
  }
  Find(handle, "nvmlDeviceGetMemoryInfo_v2",
       &library->nvmlDeviceGetMemoryInfo_v2);
  Find(handle, "nvmlDeviceGetComputeRunningProcesses_v3",
       &library->nvmlDeviceGetComputeRunningProcesses_v3);
  Find(handle, "nvmlDeviceGetGraphicsRunningProcesses_v3",
       &library->nvmlDeviceGetGraphicsRunningProcesses_v3);
  GMB_RETURN_IF_ERROR(Check(*library, library->nvmlInit_v2(), "nvmlInit_v2"));
  return library.release();  // lives as long as the process
}

absl::StatusOr<const Library*> Get() {
  static base::Mutex& mu = *new base::Mutex;
  static const Library* loaded ABSL_GUARDED_BY(mu) = nullptr;
  const base::MutexLock lock(&mu);
  if (loaded == nullptr) {
    GMB_ASSIGN_OR_RETURN(loaded, Load());
  }
  return loaded;
}

absl::StatusOr<Device> FindDevice(const Library& library,
                                  const std::string& uuid) {
  Device device = nullptr;
  GMB_RETURN_IF_ERROR(
      Check(library, library.nvmlDeviceGetHandleByUUID(uuid.c_str(), &device),
            "nvmlDeviceGetHandleByUUID"));
  return device;
}

absl::StatusOr<MemoryV1> MemoryOf(const std::string& uuid) {
  GMB_ASSIGN_OR_RETURN(const Library* library, Get());
  GMB_ASSIGN_OR_RETURN(Device device, FindDevice(*library, uuid));
  if (library->nvmlDeviceGetMemoryInfo_v2 != nullptr) {
    MemoryV2 memory = {};
    memory.version = kMemoryV2;
    if (library->nvmlDeviceGetMemoryInfo_v2(device, &memory) == kSuccess)
      return MemoryV1{memory.total, memory.free, memory.used};
  }
  MemoryV1 memory = {};
  GMB_RETURN_IF_ERROR(Check(*library,
                            library->nvmlDeviceGetMemoryInfo(device, &memory),
                            "nvmlDeviceGetMemoryInfo"));
  return memory;
}

absl::StatusOr<std::vector<ProcessInfo>> List(const Library& library,
                                              ListProcesses* list,
                                              const std::string& uuid) {
  if (list == nullptr) {
    return absl::FailedPreconditionError(
        "NVML is older than driver 510 and does not list processes");
  }
  GMB_ASSIGN_OR_RETURN(Device device, FindDevice(library, uuid));
  std::vector<ProcessInfo> infos(64);
  unsigned count = static_cast<unsigned>(infos.size());
  int result = list(device, &count, infos.data());
  for (int tries = 0; result == kInsufficientSize && tries < 4; ++tries) {
    infos.resize(count + 64);  // more may start meanwhile
    count = static_cast<unsigned>(infos.size());
    result = list(device, &count, infos.data());
  }
  GMB_RETURN_IF_ERROR(
      Check(library, result, "nvmlDeviceGet...RunningProcesses_v3"));
  infos.resize(count);
  return infos;
}

// A process may give itself any name.
std::string ShortName(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/comm"));
  std::string name;
  std::getline(file, name);
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return !absl::ascii_isprint(c); }, '?');
  return name;
}

}  // namespace

absl::StatusOr<std::string> DriverVersion() {
  GMB_ASSIGN_OR_RETURN(const Library* library, Get());
  std::array<char, 96> version = {};
  GMB_RETURN_IF_ERROR(Check(
      *library,
      library->nvmlSystemGetDriverVersion(version.data(), version.size() - 1),
      "nvmlSystemGetDriverVersion"));
  return std::string(version.data());
}

absl::StatusOr<uint64_t> FreeBytes(const std::string& uuid) {
  GMB_ASSIGN_OR_RETURN(const MemoryV1 memory, MemoryOf(uuid));
  return memory.free;
}

absl::StatusOr<uint64_t> UsedBytes(const std::string& uuid) {
  GMB_ASSIGN_OR_RETURN(const MemoryV1 memory, MemoryOf(uuid));
  return memory.used;
}

absl::StatusOr<std::vector<ProcessUsage>> Processes(const std::string& uuid) {
  GMB_ASSIGN_OR_RETURN(const Library* library, Get());
  GMB_ASSIGN_OR_RETURN(
      const std::vector<ProcessInfo> infos,
      List(*library, library->nvmlDeviceGetComputeRunningProcesses_v3, uuid));
  std::vector<ProcessUsage> usages;
  for (const ProcessInfo& info : infos) {
    if (info.used_bytes == kNotAvailable) continue;
    const auto pid = static_cast<pid_t>(info.pid);
    usages.push_back(
        {.pid = pid, .used_bytes = info.used_bytes, .program = ShortName(pid)});
  }
  return usages;
}

absl::StatusOr<uint64_t> ListedBytes(const std::string& uuid) {
  GMB_ASSIGN_OR_RETURN(const Library* library, Get());
  uint64_t bytes = 0;
  // One that computes and draws may be in both, and counts twice: too much is
  // no harm where the rest is said to be nobody's.
  for (ListProcesses* const list :
       {library->nvmlDeviceGetComputeRunningProcesses_v3,
        library->nvmlDeviceGetGraphicsRunningProcesses_v3}) {
    GMB_ASSIGN_OR_RETURN(const std::vector<ProcessInfo> infos,
                         List(*library, list, uuid));
    for (const ProcessInfo& info : infos) {
      if (info.used_bytes == kNotAvailable) {
        return absl::FailedPreconditionError(absl::StrCat(
            "NVML does not tell what process ", info.pid, " uses"));
      }
      bytes += info.used_bytes;
    }
  }
  return bytes;
}

}  // namespace gmb::device::nvml
