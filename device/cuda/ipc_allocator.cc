// Grant: slabs of the ipc device.
#include "device/cuda/ipc_allocator.h"

#include <cstring>

#include "base/status_macros.h"
#include "device/sizes.h"

namespace gmb::device {

static_assert(sizeof(CUipcMemHandle) == sizeof(IpcHandle));

absl::StatusOr<std::unique_ptr<Allocator>> IpcAllocator::Open(
    absl::string_view name) {
  GMB_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Get());
  GMB_ASSIGN_OR_RETURN(CudaDevice device, FindCudaDevice(*driver, name));
  GMB_ASSIGN_OR_RETURN(DeviceInfo info,
                       DescribeCudaDevice(*driver, device, DeviceKind::kIpc));
  GMB_ASSIGN_OR_RETURN(std::shared_ptr<const CudaContext> context,
                       CudaContext::Retain(driver, device.device));
  return std::unique_ptr<Allocator>(
      new IpcAllocator(std::move(context), device, std::move(info)));
}

IpcAllocator::~IpcAllocator() {
  const ScopedContext scope(*context_);
  for (const auto& [key, memory] : slabs()) driver().cuMemFree_v2(memory);
}

absl::StatusOr<IpcHandle> IpcAllocator::Prepare(CUdeviceptr memory,
                                                uint64_t bytes) {
  if (memory % kIpcGranularityBytes != 0) {
    return absl::InternalError(
        "the driver put an allocation into a page that it may share with "
        "others: not exported");
  }
  // Documented as not cleared, and this process may be given again what it
  // freed itself.
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver(), cuMemsetD8_v2, memory, 0, bytes));
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver(), cuStreamSynchronize, nullptr));
  CUipcMemHandle exported;
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver(), cuIpcGetMemHandle, &exported, memory));
  IpcHandle handle;
  std::memcpy(handle.data(), &exported, handle.size());
  return handle;
}

absl::StatusOr<CreatedSlab> IpcAllocator::Create(uint64_t bytes) {
  GMB_RETURN_IF_ERROR(CheckSlab(bytes));
  const ScopedContext scope(*context_);
  GMB_RETURN_IF_ERROR(scope.status());
  CUdeviceptr memory = 0;
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver(), cuMemAlloc_v2, &memory, bytes));
  const absl::StatusOr<IpcHandle> handle = Prepare(memory, bytes);
  if (!handle.ok()) {
    driver().cuMemFree_v2(memory);
    return handle.status();
  }
  return CreatedSlab{.key = Add(memory), .exported = *handle};
}

absl::StatusOr<SlabKey> IpcAllocator::Import(const ShareableHandle& /*handle*/,
                                             uint64_t /*bytes*/) {
  return absl::FailedPreconditionError(
      "the memory of an ipc device ends with its broker: use a vmm device "
      "where leases have to outlive it");
}

absl::Status IpcAllocator::Destroy(SlabKey key) {
  const ScopedContext scope(*context_);
  GMB_RETURN_IF_ERROR(scope.status());
  GMB_ASSIGN_OR_RETURN(const CUdeviceptr memory, Remove(key));
  return GMB_CUDA(driver(), cuMemFree_v2, memory);
}

}  // namespace gmb::device
