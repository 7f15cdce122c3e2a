// Grant: slabs of a GPU are created, exported and destroyed.
#include "device/cuda/vmm_allocator.h"

#include <fcntl.h>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "device/sizes.h"

namespace gmb::device {

absl::StatusOr<std::unique_ptr<Allocator>> VmmAllocator::Open(
    absl::string_view name) {
  absl::StatusOr<const CudaDriver*> driver = CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  absl::StatusOr<CudaDevice> device = FindCudaDevice(**driver, name);
  if (!device.ok()) return device.status();
  if (absl::Status status = CheckVmmSupport(**driver, *device); !status.ok()) {
    return status;
  }
  absl::StatusOr<CUmemAllocationProp> properties =
      VmmProperties(**driver, *device);
  if (!properties.ok()) return properties.status();
  absl::StatusOr<DeviceInfo> info =
      DescribeCudaDevice(**driver, *device, DeviceKind::kVmm);
  if (!info.ok()) return info.status();
  return std::unique_ptr<Allocator>(
      new VmmAllocator(*driver, *device, *std::move(info), *properties));
}

VmmAllocator::~VmmAllocator() {
  for (const auto& [key, handle] : slabs_) driver_.cuMemRelease(handle);
}

absl::StatusOr<CreatedSlab> VmmAllocator::Create(uint64_t bytes) {
  if (absl::Status status = CheckSize(bytes, info_.granularity_bytes);
      !status.ok()) {
    return status;
  }
  if (bytes > info_.total_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("slab is larger than the device: requested=", bytes,
                     " device=", info_.total_bytes));
  }
  CUmemGenericAllocationHandle handle = 0;
  if (absl::Status status =
          GMB_CUDA(driver_, cuMemCreate, &handle, bytes, &properties_, 0);
      !status.ok()) {
    return status;
  }
  int fd = -1;
  if (absl::Status status =
          GMB_CUDA(driver_, cuMemExportToShareableHandle, &fd, handle,
                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
      !status.ok()) {
    driver_.cuMemRelease(handle);
    return status;
  }
  base::UniqueFd exported(fd);
  // A child started meanwhile must not keep the memory alive.
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  const SlabKey key = next_key_++;
  slabs_.emplace(key, handle);
  return CreatedSlab{.key = key, .exported = std::move(exported)};
}

absl::Status VmmAllocator::Destroy(SlabKey key) {
  const auto slab = slabs_.find(key);
  if (slab == slabs_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no such slab on ", info_.uuid, ": key=", key));
  }
  const CUmemGenericAllocationHandle handle = slab->second;
  slabs_.erase(slab);  // whatever the driver says, it is ours no more
  return GMB_CUDA(driver_, cuMemRelease, handle);
}

}  // namespace gmb::device
