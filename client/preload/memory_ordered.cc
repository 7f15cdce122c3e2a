// `gmb run`: leases for allocations in the order of a stream, and what is
// free.
#include <algorithm>
#include <chrono>
#include <optional>

#include "base/round_up.h"
#include "client/preload/memory.h"
#include "client/preload/process_life.h"
#include "client/preload/synchronisations.h"

namespace gmb::preload {
namespace {

constexpr uint64_t kLeaseUnitBytes = uint64_t{2} << 20;

uint64_t WouldHold(uint64_t bytes) {
  if (bytes < Memory::kSmallestLeaseBytes) return SmallBlocks::RoundUp(bytes);
  return base::RoundUp(bytes, kLeaseUnitBytes);
}

// Also when the driver would refuse to say: then it is to refuse the call.
bool IsCapturing(const Driver& driver, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace

Answer Memory::AllocateOrdered(CUdevice device, uint64_t bytes,
                               CUmemoryPool pool, CUstream stream,
                               CUdeviceptr* address) {
  const Source source = {.device = device, .pool = pool};
  if (bytes > kLargestBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (captures_.Any() && IsCapturing(driver_, stream)) return std::nullopt;
  {
    // Whether an event is done must not be asked during a capture.
    const SynchronizingTurn turn(&captures_);
    std::optional<OrderedFree> fit;
    if (turn.granted())
      fit = freed_.TakeFit(driver_, device, WouldHold(bytes), stream);
    if (fit.has_value()) {
      driver_.cuEventDestroy_v2(fit->event);
      allocations_.AddAgain(fit->block, source, bytes);
      *address = fit->block.start;
      return CUDA_SUCCESS;
    }
  }
  return AllocateFrom(source, bytes, address);
}

Answer Memory::FreeOrdered(CUdeviceptr address, CUstream stream) {
  bool ours = false;
  const std::optional<Block> block = allocations_.Take(address, &ours);
  if (!block.has_value()) {
    if (ours) return CUDA_ERROR_INVALID_VALUE;
    return std::nullopt;
  }
  if (Exiting()) return CUDA_SUCCESS;
  OrderedFree freed = {.block = *block,
                       .stream = stream,
                       .context = nullptr,
                       .event = nullptr,
                       .freed_at = std::chrono::steady_clock::now(),
                       .synchronisations = Synchronisations::Count()};
  CUresult result = CUDA_SUCCESS;
  if (captures_.Any() && IsCapturing(driver_, stream)) {
    // A graph could free it at every launch, which a lease cannot do.
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  } else {
    result = driver_.cuCtxGetCurrent(&freed.context);
    if (result == CUDA_SUCCESS) {
      result = driver_.cuEventCreate(&freed.event, CU_EVENT_DISABLE_TIMING);
    }
    if (result == CUDA_SUCCESS) {
      result = driver_.cuEventRecord(freed.event, stream);
      if (result != CUDA_SUCCESS) driver_.cuEventDestroy_v2(freed.event);
    }
  }
  if (result != CUDA_SUCCESS) {
    allocations_.PutBack(*block);
    return result;
  }
  freed_.Add(freed);
  sweeper_.Sweep();
  return CUDA_SUCCESS;
}

// Without the bytes that a pool holds: the program adds those itself, from the
// pool's attributes.
Answer Memory::GetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (Exiting()) return CUDA_ERROR_DEINITIALIZED;
  CUdevice device = 0;
  if (const CUresult result = driver_.cuCtxGetDevice(&device);
      result != CUDA_SUCCESS) {
    return result;
  }
  sweeper_.GiveSurplusBack();
  kept_.ReleaseAsked(device);
  Budget budget;
  if (const Outcome outcome = broker_.Ask(names_.UuidOf(device), &budget);
      outcome != Outcome::kDone) {
    return AnswerOf(outcome);
  }
  {
    const base::MutexLock lock(&mu_);
    budget = budgets_[device].At(budget, std::chrono::steady_clock::now());
  }
  budget.free_bytes += kept_.HeldBytes(device);
  // The driver takes null for either.
  if (free_bytes != nullptr) {
    *free_bytes = std::min(budget.free_bytes, budget.total_bytes);
  }
  if (total_bytes != nullptr) *total_bytes = budget.total_bytes;
  return CUDA_SUCCESS;
}

}  // namespace gmb::preload
