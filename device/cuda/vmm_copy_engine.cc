// Eviction and restore on a GPU: maps slabs and copies them.
#include "device/cuda/vmm_copy_engine.h"

#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace gmb::device {

VmmCopyEngine::~VmmCopyEngine() {
  if (context_ == nullptr) return;
  const ScopedContext scope(*context_);
  for (const Flight& flight : flights_) {
    driver_.cuStreamSynchronize(flight.stream);
    driver_.cuEventDestroy_v2(flight.event);
  }
  for (CUevent event : idle_events_) driver_.cuEventDestroy_v2(event);
  for (CUstream stream : streams_) driver_.cuStreamDestroy_v2(stream);
}

absl::Status VmmCopyEngine::MakeReady() {
  if (context_ == nullptr) {
    GMB_ASSIGN_OR_RETURN(context_, CudaContext::Retain(&driver_, device_));
  }
  if (streams_.size() == num_streams_) return absl::OkStatus();
  const ScopedContext scope(*context_);
  GMB_RETURN_IF_ERROR(scope.status());
  while (streams_.size() < num_streams_) {
    CUstream stream = nullptr;
    GMB_RETURN_IF_ERROR(
        GMB_CUDA(driver_, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING));
    streams_.push_back(stream);
  }
  return absl::OkStatus();
}

absl::StatusOr<void*> VmmCopyEngine::Map(const ShareableHandle& slab,
                                         uint64_t bytes) {
  GMB_RETURN_IF_ERROR(MakeReady());
  const ScopedContext scope(*context_);
  GMB_RETURN_IF_ERROR(scope.status());
  CUdeviceptr start = 0;
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(driver_, cuMemAddressReserve, &start, bytes, 0, 0, 0));
  if (absl::Status status = MapAt(start, slab, bytes); !status.ok()) {
    driver_.cuMemAddressFree(start, bytes);
    return status;
  }
  return reinterpret_cast<void*>(start);
}

absl::Status VmmCopyEngine::MapAt(CUdeviceptr start,
                                  const ShareableHandle& slab, uint64_t bytes) {
  const auto* fd = std::get_if<base::UniqueFd>(&slab);
  if (fd == nullptr || !fd->valid()) {
    return absl::InvalidArgumentError(
        "a slab of a vmm device comes as a file descriptor; got none");
  }
  CUmemGenericAllocationHandle imported = 0;
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(driver_, cuMemImportFromShareableHandle, &imported,
               reinterpret_cast<void*>(static_cast<intptr_t>(fd->get())),
               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  absl::Status status =
      GMB_CUDA(driver_, cuMemMap, start, bytes, 0, imported, 0);
  const bool mapped = status.ok();
  // The mapping keeps the memory from here on.
  status.Update(GMB_CUDA(driver_, cuMemRelease, imported));
  if (status.ok()) {
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device_;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    status = GMB_CUDA(driver_, cuMemSetAccess, start, bytes, &access, 1);
  }
  if (!status.ok() && mapped) driver_.cuMemUnmap(start, bytes);
  return status;
}

absl::Status VmmCopyEngine::Unmap(void* slab, uint64_t bytes) {
  const ScopedContext scope(*context_);
  const auto start = reinterpret_cast<CUdeviceptr>(slab);
  absl::Status status = scope.status();
  // Without the context too: it is wanted by copies alone.
  status.Update(GMB_CUDA(driver_, cuMemUnmap, start, bytes));
  status.Update(GMB_CUDA(driver_, cuMemAddressFree, start, bytes));
  return status;
}

absl::StatusOr<CUevent> VmmCopyEngine::TakeEvent() {
  CUevent event = nullptr;
  if (!idle_events_.empty()) {
    event = idle_events_.back();
    idle_events_.pop_back();
    return event;
  }
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(driver_, cuEventCreate, &event,
               CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING));
  return event;
}

absl::Status VmmCopyEngine::Begin(CopyDirection direction, void* slab,
                                  void* host, uint64_t bytes) {
  const ScopedContext scope(*context_);
  GMB_RETURN_IF_ERROR(scope.status());
  GMB_ASSIGN_OR_RETURN(CUevent event, TakeEvent());
  CUstream stream = streams_[next_stream_++ % streams_.size()];
  const auto device = reinterpret_cast<CUdeviceptr>(slab);
  absl::Status status =
      direction == CopyDirection::kOut
          ? GMB_CUDA(driver_, cuMemcpyDtoHAsync_v2, host, device, bytes, stream)
          : GMB_CUDA(driver_, cuMemcpyHtoDAsync_v2, device, host, bytes,
                     stream);
  if (status.ok()) {
    status = GMB_CUDA(driver_, cuEventRecord, event, stream);
  }
  if (!status.ok()) {
    driver_.cuStreamSynchronize(stream);  // the copy may be under way
    idle_events_.push_back(event);
    return status;
  }
  flights_.push_back({stream, event});
  return absl::OkStatus();
}

absl::Status VmmCopyEngine::FinishOldest() {
  const Flight oldest = flights_.front();
  flights_.pop_front();
  idle_events_.push_back(oldest.event);
  const ScopedContext scope(*context_);
  absl::Status status = scope.status();
  if (status.ok()) status = GMB_CUDA(driver_, cuEventSynchronize, oldest.event);
  if (!status.ok()) driver_.cuStreamSynchronize(oldest.stream);
  return status;
}

}  // namespace gmb::device
