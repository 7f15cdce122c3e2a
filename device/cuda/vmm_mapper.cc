// Map: slabs of a GPU become one range of addresses.
#include "device/cuda/vmm_mapper.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "device/cuda/cuda_device.h"
#include "device/sizes.h"

namespace gmb::device {
namespace {

class VmmRange final : public MappedRange {
 public:
  // `devices` get access: the range's own first.
  VmmRange(std::shared_ptr<const CudaContext> context, CUdeviceptr start,
           uint64_t bytes, uint64_t granularity_bytes,
           std::vector<CUdevice> devices, Protection protection)
      : context_(std::move(context)),
        start_(start),
        bytes_(bytes),
        granularity_bytes_(granularity_bytes),
        devices_(std::move(devices)),
        protection_(protection) {}
  VmmRange(const VmmRange&) = delete;
  VmmRange& operator=(const VmmRange&) = delete;

  ~VmmRange() override {
    const ScopedContext scope(*context_);
    // After a failed synchronise nothing of this process runs that could be
    // hurt, or the process is lost: unmap in any case.
    if (!Unmap().ok() && mapped_bytes_ != 0) {
      driver().cuMemUnmap(start_, mapped_bytes_);
    }
    driver().cuMemAddressFree(start_, bytes_);
  }

  [[nodiscard]] void* data() const override {
    return reinterpret_cast<void*>(start_);
  }
  [[nodiscard]] uint64_t size_bytes() const override { return bytes_; }

  [[nodiscard]] absl::Status Map(
      std::vector<ShareableHandle> handles,
      absl::Span<const uint64_t> slab_bytes) override {
    if (mapped_bytes_ != 0) {
      return absl::FailedPreconditionError("range is mapped: unmap it first");
    }
    GMB_RETURN_IF_ERROR(
        CheckSlabs(handles.size(), slab_bytes, bytes_, granularity_bytes_));
    const ScopedContext scope(*context_);
    GMB_RETURN_IF_ERROR(scope.status());
    absl::Status status;
    for (size_t i = 0; i < handles.size() && status.ok(); ++i) {
      status = MapNext(std::move(handles[i]), slab_bytes[i]);
    }
    if (status.ok()) status = SetAccess();
    // Without access nothing can have used it: no need to synchronise.
    if (!status.ok()) UnmapMapped().IgnoreError();
    return status;
  }

  [[nodiscard]] absl::Status Unmap() override {
    if (mapped_bytes_ == 0) return absl::OkStatus();
    const ScopedContext scope(*context_);
    GMB_RETURN_IF_ERROR(scope.status());
    for (const CUdevice device : devices_) {
      GMB_RETURN_IF_ERROR(SynchronizeDevice(driver(), device));
    }
    return UnmapMapped();
  }

  [[nodiscard]] absl::Status UnmapIdle() override {
    const ScopedContext scope(*context_);
    GMB_RETURN_IF_ERROR(scope.status());
    return UnmapMapped();
  }

 private:
  const CudaDriver& driver() const { return context_->driver(); }

  // Maps one slab behind those mapped so far.
  absl::Status MapNext(ShareableHandle handle, uint64_t bytes) {
    auto* const fd = std::get_if<base::UniqueFd>(&handle);
    if (fd == nullptr || !fd->valid()) {
      return absl::InvalidArgumentError(
          "a slab of a vmm device comes as a file descriptor; got none");
    }
    CUmemGenericAllocationHandle imported = 0;
    GMB_RETURN_IF_ERROR(
        GMB_CUDA(driver(), cuMemImportFromShareableHandle, &imported,
                 reinterpret_cast<void*>(static_cast<intptr_t>(fd->get())),
                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    const absl::Status mapped = GMB_CUDA(
        driver(), cuMemMap, start_ + mapped_bytes_, bytes, 0, imported, 0);
    if (mapped.ok()) mapped_bytes_ += bytes;
    // The mapping alone keeps the memory: no handle is left to remap it with.
    const absl::Status released = GMB_CUDA(driver(), cuMemRelease, imported);
    return mapped.ok() ? released : mapped;
  }

  absl::Status SetAccess() {
    std::vector<CUmemAccessDesc> descriptions(devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i) {
      descriptions[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      descriptions[i].location.id = devices_[i];
      descriptions[i].flags = protection_ == Protection::kRead
                                  ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                  : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    return GMB_CUDA(driver(), cuMemSetAccess, start_, bytes_,
                    descriptions.data(), descriptions.size());
  }

  absl::Status UnmapMapped() {
    if (mapped_bytes_ == 0) return absl::OkStatus();
    absl::Status status = GMB_CUDA(driver(), cuMemUnmap, start_, mapped_bytes_);
    if (status.ok()) mapped_bytes_ = 0;
    return status;
  }

  const std::shared_ptr<const CudaContext> context_;
  const CUdeviceptr start_;
  const uint64_t bytes_;
  const uint64_t granularity_bytes_;
  const std::vector<CUdevice> devices_;
  const Protection protection_;
  uint64_t mapped_bytes_ = 0;  // from the start on
};

}  // namespace

absl::StatusOr<std::unique_ptr<MappedRange>> VmmMapper::Reserve(
    uint64_t bytes, absl::Span<const std::string> access,
    Protection protection) {
  GMB_RETURN_IF_ERROR(CheckSize(bytes, info().granularity_bytes));
  std::vector<CUdevice> devices = {context()->device()};
  for (const std::string& uuid : access) {
    GMB_ASSIGN_OR_RETURN(const CUdevice peer, FindPeer(uuid));
    if (peer != context()->device()) devices.push_back(peer);
  }
  const ScopedContext scope(*context());
  GMB_RETURN_IF_ERROR(scope.status());
  CUdeviceptr start = 0;
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(driver(), cuMemAddressReserve, &start, bytes, 0, 0, 0));
  return std::make_unique<VmmRange>(context(), start, bytes,
                                    info().granularity_bytes,
                                    std::move(devices), protection);
}

absl::StatusOr<CUdevice> VmmMapper::FindPeer(const std::string& uuid) {
  {
    const base::MutexLock lock(&mu_);
    if (const auto known = peers_.find(uuid); known != peers_.end())
      return known->second;
  }
  GMB_ASSIGN_OR_RETURN(const CudaDevice found, FindCudaDevice(driver(), uuid));
  int reachable = 1;
  if (found.device != context()->device()) {
    GMB_RETURN_IF_ERROR(GMB_CUDA(driver(), cuDeviceCanAccessPeer, &reachable,
                                 found.device, context()->device()));
  }
  if (reachable == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "these GPUs cannot access each other's memory: lease from each alone: ",
        info().uuid, " ", uuid));
  }
  const base::MutexLock lock(&mu_);
  return peers_.emplace(uuid, found.device).first->second;
}

}  // namespace gmb::device
