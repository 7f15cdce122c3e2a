// The heap's frees: events that show how far a stream has got.
#include "device/cuda/cuda_stream_fences.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"

namespace gmb::device {

class CudaStreamFences::Events {
 public:
  explicit Events(std::shared_ptr<const CudaContext> context)
      : context_(std::move(context)) {}
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() {
    const ScopedContext scope(*context_);
    if (!scope.status().ok()) return;
    for (CUevent event : idle_) driver().cuEventDestroy_v2(event);
  }

  [[nodiscard]] const CudaContext& context() const { return *context_; }
  [[nodiscard]] const CudaDriver& driver() const { return context_->driver(); }

  absl::StatusOr<CUevent> Take() {
    {
      const base::MutexLock lock(&mu_);
      if (!idle_.empty()) {
        CUevent event = idle_.back();
        idle_.pop_back();
        return event;
      }
    }
    CUevent event = nullptr;
    GMB_RETURN_IF_ERROR(
        GMB_CUDA(driver(), cuEventCreate, &event, CU_EVENT_DISABLE_TIMING));
    const base::MutexLock lock(&mu_);
    idle_.reserve(++made_);  // so that Return cannot fail
    return event;
  }

  void Return(CUevent event) noexcept {
    const base::MutexLock lock(&mu_);
    idle_.push_back(event);
  }

 private:
  const std::shared_ptr<const CudaContext> context_;
  base::Mutex mu_;
  std::vector<CUevent> idle_ ABSL_GUARDED_BY(mu_);
  size_t made_ ABSL_GUARDED_BY(mu_) = 0;
};

class CudaStreamFences::Fence final : public StreamFence {
 public:
  // `kept`: the event is one of `events`, and not of another context.
  Fence(std::shared_ptr<Events> events, CUevent event, bool kept)
      : events_(std::move(events)), event_(event), kept_(kept) {}
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  ~Fence() override {
    if (kept_) {
      events_->Return(event_);
    } else {
      events_->driver().cuEventDestroy_v2(event_);
    }
  }

  absl::StatusOr<bool> Reached() override {
    const ScopedContext scope(events_->context());
    GMB_RETURN_IF_ERROR(scope.status());
    const CUresult result = events_->driver().cuEventQuery(event_);
    if (result == CUDA_ERROR_NOT_READY) return false;
    GMB_RETURN_IF_ERROR(events_->driver().Check(result, "cuEventQuery"));
    return true;
  }

  absl::Status Wait() override {
    const ScopedContext scope(events_->context());
    GMB_RETURN_IF_ERROR(scope.status());
    return GMB_CUDA(events_->driver(), cuEventSynchronize, event_);
  }

 private:
  const std::shared_ptr<Events> events_;
  CUevent event_;
  const bool kept_;
};

CudaStreamFences::CudaStreamFences(std::shared_ptr<const CudaContext> context)
    : events_(std::make_shared<Events>(std::move(context))) {}
CudaStreamFences::~CudaStreamFences() = default;

absl::StatusOr<std::unique_ptr<StreamFence>> CudaStreamFences::Record(
    void* stream) {
  const ScopedContext scope(events_->context());
  GMB_RETURN_IF_ERROR(scope.status());
  GMB_ASSIGN_OR_RETURN(CUevent event, events_->Take());
  auto fence = std::make_unique<Fence>(events_, event, true);
  const CudaDriver& driver = events_->driver();
  const auto name = static_cast<CUstream>(stream);
  const CUresult result = driver.cuEventRecord(event, name);
  // The driver records an event in a stream of the event's own context only.
  if (result == CUDA_ERROR_INVALID_HANDLE) return RecordInItsContext(name);
  GMB_RETURN_IF_ERROR(driver.Check(result, "cuEventRecord"));
  return fence;
}

absl::StatusOr<std::unique_ptr<StreamFence>>
CudaStreamFences::RecordInItsContext(CUstream stream) {
  const CudaDriver& driver = events_->driver();
  CUcontext of_stream = nullptr;
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver, cuStreamGetCtx, stream, &of_stream));
  const ScopedContext scope(driver, of_stream);
  GMB_RETURN_IF_ERROR(scope.status());
  CUevent event = nullptr;
  GMB_RETURN_IF_ERROR(
      GMB_CUDA(driver, cuEventCreate, &event, CU_EVENT_DISABLE_TIMING));
  auto fence = std::make_unique<Fence>(events_, event, false);
  GMB_RETURN_IF_ERROR(GMB_CUDA(driver, cuEventRecord, event, stream));
  return fence;
}

absl::Status CudaStreamFences::WaitForAll() {
  const ScopedContext scope(events_->context());
  GMB_RETURN_IF_ERROR(scope.status());
  return GMB_CUDA(events_->driver(), cuCtxSynchronize);
}

}  // namespace gmb::device
