// Grant: slabs of a GPU are created, exported and destroyed.
#include "device/cuda/vmm_allocator.h"

#include <fcntl.h>

#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace gmb::device {

absl::StatusOr<std::unique_ptr<Allocator>> VmmAllocator::Open(
    absl::string_view name) {
  GMB_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Get());
  GMB_ASSIGN_OR_RETURN(CudaDevice device, FindCudaDevice(*driver, name));
  GMB_RETURN_IF_ERROR(CheckVmmSupport(*driver, device));
  GMB_ASSIGN_OR_RETURN(CUmemAllocationProp properties,
                       VmmProperties(*driver, device));
  GMB_ASSIGN_OR_RETURN(DeviceInfo info,
                       DescribeCudaDevice(*driver, device, DeviceKind::kVmm));
  return std::unique_ptr<Allocator>(
      new VmmAllocator(driver, device, std::move(info), properties));
}

VmmAllocator::~VmmAllocator() {
  for (const auto& [key, handle] : slabs()) driver().cuMemRelease(handle);
}

absl::StatusOr<CreatedSlab> VmmAllocator::Create(uint64_t bytes) {
  GMB_RETURN_IF_ERROR(CheckSlab(bytes));
  CUmemGenericAllocationHandle handle = 0;
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(driver(), cuMemCreate, &handle, bytes, &properties_, 0));
  int fd = -1;
  if (absl::Status status =
          GMB_CUDA(driver(), cuMemExportToShareableHandle, &fd, handle,
                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
      !status.ok()) {
    driver().cuMemRelease(handle);
    return status;
  }
  base::UniqueFd exported(fd);
  // A child started meanwhile must not keep the memory alive.
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return CreatedSlab{.key = Add(handle), .exported = std::move(exported)};
}

absl::Status VmmAllocator::Destroy(SlabKey key) {
  GMB_ASSIGN_OR_RETURN(const CUmemGenericAllocationHandle handle, Remove(key));
  return GMB_CUDA(driver(), cuMemRelease, handle);
}

}  // namespace gmb::device
