// Grant: slabs of the ipc device.
#include "device/cuda/ipc_allocator.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "device/sizes.h"

namespace gmb::device {

static_assert(sizeof(CUipcMemHandle) == sizeof(IpcHandle));

absl::StatusOr<std::unique_ptr<Allocator>> IpcAllocator::Open(
    absl::string_view name) {
  absl::StatusOr<const CudaDriver*> driver = CudaDriver::Get();
  if (!driver.ok()) return driver.status();
  absl::StatusOr<CudaDevice> device = FindCudaDevice(**driver, name);
  if (!device.ok()) return device.status();
  absl::StatusOr<DeviceInfo> info =
      DescribeCudaDevice(**driver, *device, DeviceKind::kIpc);
  if (!info.ok()) return info.status();
  absl::StatusOr<std::shared_ptr<const CudaContext>> context =
      CudaContext::Retain(*driver, device->device);
  if (!context.ok()) return context.status();
  return std::unique_ptr<Allocator>(
      new IpcAllocator(*std::move(context), *device, *std::move(info)));
}

IpcAllocator::~IpcAllocator() {
  const ScopedContext scope(*context_);
  for (const auto& [key, memory] : slabs_) driver().cuMemFree_v2(memory);
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
  if (absl::Status status = GMB_CUDA(driver(), cuMemsetD8_v2, memory, 0, bytes);
      !status.ok()) {
    return status;
  }
  if (absl::Status status = GMB_CUDA(driver(), cuStreamSynchronize, nullptr);
      !status.ok()) {
    return status;
  }
  CUipcMemHandle exported;
  if (absl::Status status =
          GMB_CUDA(driver(), cuIpcGetMemHandle, &exported, memory);
      !status.ok()) {
    return status;
  }
  IpcHandle handle;
  std::memcpy(handle.data(), &exported, handle.size());
  return handle;
}

absl::StatusOr<CreatedSlab> IpcAllocator::Create(uint64_t bytes) {
  if (absl::Status status = CheckSize(bytes, info_.granularity_bytes);
      !status.ok()) {
    return status;
  }
  if (bytes > info_.total_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("slab is larger than the device: requested=", bytes,
                     " device=", info_.total_bytes));
  }
  const ScopedContext scope(*context_);
  if (!scope.status().ok()) return scope.status();
  CUdeviceptr memory = 0;
  if (absl::Status status = GMB_CUDA(driver(), cuMemAlloc_v2, &memory, bytes);
      !status.ok()) {
    return status;
  }
  const absl::StatusOr<IpcHandle> handle = Prepare(memory, bytes);
  if (!handle.ok()) {
    driver().cuMemFree_v2(memory);
    return handle.status();
  }
  const SlabKey key = next_key_++;
  slabs_.emplace(key, memory);
  return CreatedSlab{.key = key, .exported = *handle};
}

absl::Status IpcAllocator::Destroy(SlabKey key) {
  const auto slab = slabs_.find(key);
  if (slab == slabs_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no such slab on ", info_.uuid, ": key=", key));
  }
  const ScopedContext scope(*context_);
  if (!scope.status().ok()) return scope.status();
  const CUdeviceptr memory = slab->second;
  slabs_.erase(slab);  // whatever the driver says, it is ours no more
  return GMB_CUDA(driver(), cuMemFree_v2, memory);
}

}  // namespace gmb::device
