// Opens GPUs: their allocators, mappers, copiers and fences.
#include "device/cuda/cuda_devices.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_driver.h"
#include "device/cuda/cuda_stream_fences.h"
#include "device/cuda/gpu_hardware.h"
#include "device/cuda/ipc_allocator.h"
#include "device/cuda/ipc_mapper.h"
#include "device/cuda/nvml.h"
#include "device/cuda/vmm_allocator.h"
#include "device/cuda/vmm_copy_engine.h"
#include "device/cuda/vmm_mapper.h"
#include "device/devices.h"

namespace gmb::device {
namespace {

std::string DriverVersion() {
  if (absl::StatusOr<std::string> version = nvml::DriverVersion();
      version.ok()) {
    return *std::move(version);
  }
  const absl::StatusOr<const CudaDriver*> driver = CudaDriver::Get();
  int cuda = 0;
  if (!driver.ok() || !GMB_CUDA(**driver, cuDriverGetVersion, &cuda).ok()) {
    return "";
  }
  return absl::StrCat("CUDA ", cuda / 1000, ".", cuda % 1000 / 10);
}

absl::Status FindGpus(std::vector<DeviceInfo>* gpus) {
  GMB_ASSIGN_OR_RETURN(const CudaDriver* const driver, CudaDriver::Get());
  GMB_ASSIGN_OR_RETURN(const std::vector<CudaDevice> devices,
                       ListCudaDevices(*driver));
  absl::Status problem;
  for (const CudaDevice& device : devices) {
    const absl::Status support = CheckVmmSupport(*driver, device);
    const DeviceKind kind = support.ok() ? DeviceKind::kVmm : DeviceKind::kIpc;
    absl::StatusOr<DeviceInfo> info = DescribeCudaDevice(*driver, device, kind);
    problem.Update(support);
    problem.Update(info.status());
    if (info.ok()) gpus->push_back(*std::move(info));
  }
  return problem;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Allocator>> OpenVmmAllocator(
    std::string_view name) {
  return VmmAllocator::Open(absl::string_view(name.data(), name.size()));
}

absl::StatusOr<std::unique_ptr<Allocator>> OpenIpcAllocator(
    std::string_view name) {
  return IpcAllocator::Open(absl::string_view(name.data(), name.size()));
}

absl::StatusOr<std::unique_ptr<Mapper>> OpenCudaMapper(const DeviceInfo& info) {
  GMB_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Get());
  GMB_ASSIGN_OR_RETURN(CudaDevice device, FindCudaDevice(*driver, info.uuid));
  GMB_ASSIGN_OR_RETURN(DeviceInfo ours,
                       DescribeCudaDevice(*driver, device, info.kind));
  GMB_ASSIGN_OR_RETURN(std::shared_ptr<const CudaContext> context,
                       CudaContext::Retain(driver, device.device));
  if (info.kind == DeviceKind::kIpc) {
    return std::make_unique<IpcMapper>(std::move(ours), std::move(context));
  }
  return std::make_unique<VmmMapper>(std::move(ours), std::move(context));
}

absl::StatusOr<std::unique_ptr<CopyEngine>> OpenCudaCopyEngine(
    const DeviceInfo& info, unsigned streams) {
  if (info.kind != DeviceKind::kVmm) {
    return absl::FailedPreconditionError(
        "contents of an ipc device cannot be evicted: its slabs would not "
        "come "
        "back at the same address; use a vmm device");
  }
  GMB_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Get());
  GMB_ASSIGN_OR_RETURN(CudaDevice device, FindCudaDevice(*driver, info.uuid));
  return std::make_unique<VmmCopyEngine>(driver, device.device, streams);
}

absl::StatusOr<std::unique_ptr<StreamFences>> OpenCudaStreamFences(
    const DeviceInfo& info) {
  GMB_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Get());
  GMB_ASSIGN_OR_RETURN(CudaDevice device, FindCudaDevice(*driver, info.uuid));
  GMB_ASSIGN_OR_RETURN(std::shared_ptr<const CudaContext> context,
                       CudaContext::Retain(driver, device.device));
  return std::make_unique<CudaStreamFences>(std::move(context));
}

absl::StatusOr<std::vector<ProcessUsage>> DeviceProcesses(
    const std::string& uuid) {
  return nvml::Processes(uuid);
}

absl::StatusOr<uint64_t> DeviceListedBytes(const std::string& uuid) {
  return nvml::ListedBytes(uuid);
}

absl::StatusOr<uint64_t> DeviceUsedBytes(const std::string& uuid) {
  return nvml::UsedBytes(uuid);
}

CudaProbe ProbeCuda() {
  CudaProbe probe;
  probe.machine_has_gpu = MachineHasGpu();
  probe.driver_version = DriverVersion();
  probe.problem = std::string(FindGpus(&probe.gpus).message());
  return probe;
}

}  // namespace gmb::device
