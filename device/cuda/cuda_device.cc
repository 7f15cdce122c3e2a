// Finds a GPU by name, and says what it can do.
#include "device/cuda/cuda_device.h"

#include <array>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace gmb::device {
namespace {

std::string FormatUuid(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    absl::StrAppend(&text, absl::Hex(byte, absl::kZeroPad2));
  }
  return text;
}

absl::StatusOr<CudaDevice> Inspect(const CudaDriver& driver, int ordinal) {
  CudaDevice device;
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver, cuDeviceGet, &device.device, ordinal));
  CUuuid uuid;
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(driver, cuDeviceGetUuid_v2, &uuid, device.device));
  device.uuid = FormatUuid(uuid);
  std::array<char, 128> name = {};
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver, cuDeviceGetName, name.data(),
                               name.size() - 1, device.device));
  device.name = name.data();
  size_t bytes = 0;
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(driver, cuDeviceTotalMem_v2, &bytes, device.device));
  device.total_bytes = bytes;
  return device;
}

absl::StatusOr<bool> HasAttribute(const CudaDriver& driver,
                                  const CudaDevice& device,
                                  CUdevice_attribute attribute) {
  int value = 0;
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(driver, cuDeviceGetAttribute, &value, attribute, device.device));
  return value != 0;
}

}  // namespace

absl::StatusOr<std::vector<CudaDevice>> ListCudaDevices(
    const CudaDriver& driver) {
  int count = 0;
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver, cuDeviceGetCount, &count));
  std::vector<CudaDevice> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    GMB_ASSIGN_OR_RETURN(CudaDevice device, Inspect(driver, ordinal));
    devices.push_back(std::move(device));
  }
  return devices;
}

absl::StatusOr<CudaDevice> FindCudaDevice(const CudaDriver& driver,
                                          absl::string_view name) {
  GMB_ASSIGN_OR_RETURN(std::vector<CudaDevice> devices,
                       ListCudaDevices(driver));
  absl::string_view digits = name;
  size_t ordinal = 0;
  if (absl::ConsumePrefix(&digits, "cuda:") &&
      absl::SimpleAtoi(digits, &ordinal) && ordinal < devices.size()) {
    return devices[ordinal];
  }
  for (CudaDevice& device : devices) {
    if (absl::EqualsIgnoreCase(device.uuid, name)) return std::move(device);
  }
  return absl::NotFoundError(absl::StrCat(
      "this process sees no such GPU (name one by UUID or as cuda:<ordinal>, "
      "and check CUDA_VISIBLE_DEVICES): ",
      name, "; visible: ",
      absl::StrJoin(devices, " ", [](std::string* out, const CudaDevice& d) {
        out->append(d.uuid);
      })));
}

absl::Status CheckVmmSupport(const CudaDriver& driver,
                             const CudaDevice& device) {
  for (const CUdevice_attribute attribute :
       {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED}) {
    GMB_ASSIGN_OR_RETURN(const bool has,
                         HasAttribute(driver, device, attribute));
    if (!has) {
      return absl::FailedPreconditionError(absl::StrCat(
          attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
              ? "GPU has no virtual memory management"
              : "GPU cannot export memory as file descriptors",
          " (Pascal or newer on Linux has): use an ipc device: ", device.uuid,
          " ", device.name));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CUmemAllocationProp> VmmProperties(const CudaDriver& driver,
                                                  const CudaDevice& device) {
  GMB_ASSIGN_OR_RETURN(
      const bool rdma,
      HasAttribute(
          driver, device,
          CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED));
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device.device;
  // NCCL and UCX refuse VMM memory without it.
  properties.allocFlags.gpuDirectRDMACapable = rdma ? 1 : 0;
  return properties;
}

absl::StatusOr<DeviceInfo> DescribeCudaDevice(const CudaDriver& driver,
                                              const CudaDevice& device,
                                              DeviceKind kind) {
  size_t granularity = kIpcGranularityBytes;
  if (kind == DeviceKind::kVmm) {
    GMB_ASSIGN_OR_RETURN(const CUmemAllocationProp properties,
                         VmmProperties(driver, device));
    GMB_RETURN_IF_ERROR(GMB_CUDA(driver, cuMemGetAllocationGranularity,
                                 &granularity, &properties,
                                 CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  }
  return DeviceInfo{.kind = kind,
                    .uuid = device.uuid,
                    .name = device.name,
                    .total_bytes = device.total_bytes,
                    .granularity_bytes = granularity};
}

}  // namespace gmb::device
