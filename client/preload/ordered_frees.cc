// `gmb run`: blocks that wait for their stream before they go back.
#include "client/preload/ordered_frees.h"

#include "client/preload/small_blocks.h"

namespace gmb::preload {

uint64_t HeldBytes(const Block& block) {
  return block.lease.has_value() ? block.lease->bytes
                                 : SmallBlocks::RoundUp(block.bytes);
}

bool IsLost(CUresult of_event) {
  return of_event == CUDA_ERROR_INVALID_HANDLE ||
         of_event == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

std::optional<OrderedFree> OrderedFrees::TakeFit(const Driver& driver,
                                                 CUdevice device,
                                                 uint64_t held_bytes,
                                                 CUstream stream) {
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    const std::optional<LeaseRange>& lease = it->block.lease;
    if (it->block.device != device || HeldBytes(it->block) != held_bytes ||
        (lease.has_value() && lease->shared)) {
      continue;
    }
    if (const CUresult result = driver.cuEventQuery(it->event);
        result != CUDA_SUCCESS) {
      // The name of a stream may be another stream's by now: order them.
      if (result != CUDA_ERROR_NOT_READY || it->stream != stream ||
          driver.cuStreamWaitEvent(stream, it->event, 0) != CUDA_SUCCESS) {
        continue;
      }
    }
    const OrderedFree fit = *it;
    waiting_.erase(it);
    return fit;
  }
  return std::nullopt;
}

std::vector<OrderedFree> OrderedFrees::TakeOld(
    const Driver& driver, std::chrono::steady_clock::time_point now) {
  std::vector<OrderedFree> old;
  auto it = waiting_.begin();
  while (it != waiting_.end() && now - it->freed_at >= kKeptFor) {
    const CUresult result = driver.cuEventQuery(it->event);
    if (result == CUDA_SUCCESS || IsLost(result)) {
      if (result != CUDA_SUCCESS) it->event = nullptr;
      old.push_back(*it);
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  return old;
}

std::vector<OrderedFree> OrderedFrees::TakeSurplus(const Driver& driver,
                                                   PoolBytes surplus,
                                                   uint64_t synchronisations) {
  std::vector<OrderedFree> taken;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto of_pool = surplus.find(it->block.pool);
    const uint64_t bytes = HeldBytes(it->block);
    if (it->synchronisations < synchronisations && of_pool != surplus.end() &&
        of_pool->second >= bytes &&
        driver.cuEventQuery(it->event) == CUDA_SUCCESS) {
      of_pool->second -= bytes;
      taken.push_back(*it);
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  return taken;
}

PoolBytes OrderedFrees::HeldOfPools() const {
  PoolBytes held;
  for (const OrderedFree& one : waiting_)
    held[one.block.pool] += HeldBytes(one.block);
  return held;
}

std::vector<OrderedFree> OrderedFrees::TakeAll() {
  std::vector<OrderedFree> all(waiting_.begin(), waiting_.end());
  waiting_.clear();
  return all;
}

template <typename Which>
std::vector<OrderedFree> OrderedFrees::Take(Which which) {
  std::vector<OrderedFree> taken;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (which(*it)) {
      taken.push_back(*it);
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  return taken;
}

std::vector<OrderedFree> OrderedFrees::TakeOf(CUcontext context) {
  return Take([&](const OrderedFree& one) { return one.context == context; });
}

std::vector<OrderedFree> OrderedFrees::TakeDoneOf(const Driver& driver,
                                                  CUcontext context) {
  return Take([&](const OrderedFree& one) {
    return one.context == context &&
           driver.cuEventQuery(one.event) == CUDA_SUCCESS;
  });
}

}  // namespace gmb::preload
