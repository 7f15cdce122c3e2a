// Map: a slab of the ipc device, by its handle.
#include "device/cuda/ipc_mapper.h"

#include <cstring>
#include <utility>
#include <variant>
#include <vector>

#include "base/status_macros.h"
#include "device/sizes.h"

namespace gmb::device {
namespace {

class IpcRange final : public MappedRange {
 public:
  IpcRange(std::shared_ptr<const CudaContext> context, uint64_t bytes,
           uint64_t granularity_bytes)
      : context_(std::move(context)),
        bytes_(bytes),
        granularity_bytes_(granularity_bytes) {}
  IpcRange(const IpcRange&) = delete;
  IpcRange& operator=(const IpcRange&) = delete;

  ~IpcRange() override {
    const ScopedContext scope(*context_);
    if (!Unmap().ok()) driver().cuIpcCloseMemHandle(start_);
  }

  [[nodiscard]] void* data() const override {
    return reinterpret_cast<void*>(start_);
  }
  [[nodiscard]] uint64_t size_bytes() const override { return bytes_; }

  [[nodiscard]] absl::Status Map(
      std::vector<ShareableHandle> handles,
      absl::Span<const uint64_t> slab_bytes) override {
    if (start_ != 0) {
      return absl::FailedPreconditionError("range is mapped: unmap it first");
    }
    GMB_RETURN_IF_ERROR(
        CheckSlabs(handles.size(), slab_bytes, bytes_, granularity_bytes_));
    if (handles.size() != 1) {
      return absl::InvalidArgumentError(
          "a range of an ipc device holds one slab: ask for one, or use vmm");
    }
    const auto* const handle = std::get_if<IpcHandle>(&handles[0]);
    if (handle == nullptr) {
      return absl::InvalidArgumentError(
          "a slab of an ipc device comes as 64 bytes; got none");
    }
    CUipcMemHandle imported;
    std::memcpy(&imported, handle->data(), handle->size());
    const ScopedContext scope(*context_);
    GMB_RETURN_IF_ERROR(scope.status());
    CUdeviceptr start = 0;
    absl::Status status =
        GMB_CUDA(driver(), cuIpcOpenMemHandle_v2, &start, imported,
                 CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (status.ok()) start_ = start;
    return status;
  }

  [[nodiscard]] absl::Status Unmap() override {
    if (start_ == 0) return absl::OkStatus();
    const ScopedContext scope(*context_);
    GMB_RETURN_IF_ERROR(scope.status());
    GMB_RETURN_IF_ERROR(GMB_CUDA(driver(), cuCtxSynchronize));
    return Close();
  }

  [[nodiscard]] absl::Status UnmapIdle() override {
    if (start_ == 0) return absl::OkStatus();
    const ScopedContext scope(*context_);
    GMB_RETURN_IF_ERROR(scope.status());
    return Close();
  }

 private:
  const CudaDriver& driver() const { return context_->driver(); }

  absl::Status Close() {
    absl::Status status = GMB_CUDA(driver(), cuIpcCloseMemHandle, start_);
    if (status.ok()) start_ = 0;
    return status;
  }

  const std::shared_ptr<const CudaContext> context_;
  const uint64_t bytes_;
  const uint64_t granularity_bytes_;
  CUdeviceptr start_ = 0;  // 0 while unmapped
};

}  // namespace

absl::StatusOr<std::unique_ptr<MappedRange>> IpcMapper::Reserve(
    uint64_t bytes, absl::Span<const std::string> access,
    Protection /*protection*/) {
  GMB_RETURN_IF_ERROR(CheckSize(bytes, info().granularity_bytes));
  for (const std::string& uuid : access) {
    if (uuid == info().uuid) continue;
    return absl::InvalidArgumentError(
        "a range of an ipc device is for its own GPU alone: use vmm");
  }
  return std::make_unique<IpcRange>(context(), bytes, info().granularity_bytes);
}

}  // namespace gmb::device
