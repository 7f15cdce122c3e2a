// Grant: slabs of a GPU are created, exported and destroyed.
#include "device/cuda/vmm_allocator.h"

#include <fcntl.h>

#include <variant>

#include "absl/strings/str_cat.h"
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

absl::Status VmmAllocator::CheckImported(
    CUmemGenericAllocationHandle handle) const {
  CUmemAllocationProp found = {};
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver(), cuMemGetAllocationPropertiesFromHandle,
                               &found, handle));
  if (found.type == properties_.type &&
      found.location.type == properties_.location.type &&
      found.location.id == properties_.location.id) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("refused a slab that is not of this GPU: ", info().uuid));
}

absl::StatusOr<SlabKey> VmmAllocator::Import(const ShareableHandle& handle,
                                             uint64_t bytes) {
  GMB_RETURN_IF_ERROR(CheckSlab(bytes));
  const auto* const fd = std::get_if<base::UniqueFd>(&handle);
  if (fd == nullptr || !fd->valid()) {
    return absl::InvalidArgumentError(
        "a slab of a vmm device is kept as a file descriptor; got none");
  }
  CUmemGenericAllocationHandle imported = 0;
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(driver(), cuMemImportFromShareableHandle, &imported,
               reinterpret_cast<void*>(static_cast<intptr_t>(fd->get())),
               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  if (absl::Status status = CheckImported(imported); !status.ok()) {
    driver().cuMemRelease(imported);
    return status;
  }
  return Add(imported);
}

absl::Status VmmAllocator::Destroy(SlabKey key) {
  GMB_ASSIGN_OR_RETURN(const CUmemGenericAllocationHandle handle, Remove(key));
  return GMB_CUDA(driver(), cuMemRelease, handle);
}

}  // namespace gmb::device
