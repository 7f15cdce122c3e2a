// `gmb run`: what the program has freed goes back.
#include "client/preload/sweeper.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "client/preload/process_life.h"
#include "client/preload/synchronisations.h"

namespace gmb::preload {
namespace {

using Clock = std::chrono::steady_clock;

// So long a thread that is out of memory waits for others. They may wait for a
// lock of the program's that it has.
constexpr auto kPatience = std::chrono::seconds(2);

}  // namespace

void Sweeper::GiveBack(const std::vector<OrderedFree>& freed) {
  for (const OrderedFree& one : freed) {
    if (one.event != nullptr) parts_.driver.cuEventDestroy_v2(one.event);
    parts_.returns.GiveBack(one.block);
  }
}

bool Sweeper::ReleaseKept() {
  const uint64_t before = parts_.returns.count();
  GiveAllBack();
  return parts_.returns.count() != before;
}

// An event says all of a block: work on other streams is what its stream was to
// wait for. Without one the block's device is synchronised.
bool Sweeper::Await(FreedBlocks::Taken* taken) {
  std::set<std::pair<CUdevice, HomeContext>> homes;
  for (const Block& block : taken->blocks)
    homes.emplace(block.device, block.home);
  for (OrderedFree& one : taken->ordered) {
    const CUresult result = parts_.driver.cuEventSynchronize(one.event);
    if (IsLost(result)) {
      one.event = nullptr;
      homes.emplace(one.block.device, HomeContext{});
    } else if (result != CUDA_SUCCESS) {
      return false;
    }
  }
  return std::all_of(homes.begin(), homes.end(), [this](const auto& home) {
    return parts_.contexts.Synchronize(home.first, home.second) == CUDA_SUCCESS;
  });
}

// A call that gives nothing back here is out of memory: so it waits where
// another thread resets the device, say, but not for ever.
void Sweeper::GiveAllBack() {
  if (Exiting()) return;
  const auto until = Clock::now() + kPatience;
  const SynchronizingTurn turn(&parts_.captures, until);
  if (!turn.granted()) return;
  FreedBlocks::Taken taken = parts_.freed.TakeAll(until);
  if (!Await(&taken)) {
    parts_.freed.PutBack(taken);
    return;
  }
  GiveBack(taken.ordered);
  for (const Block& block : taken.blocks) parts_.returns.GiveBack(block);
  GiveReservesBack();
}

// No work is left on it, so that it may serve any allocation for a moment.
void Sweeper::GiveSurplusBack() {
  if (Exiting()) return;
  const base::MutexLock alone(&giving_surplus_);
  const SynchronizingTurn turn(&parts_.captures);
  if (!turn.granted()) return;
  const auto above = [&](const PoolBytes& waiting) {
    return parts_.allocations.AboveThresholds(waiting);
  };
  const std::optional<FreedBlocks::Taken> taken =
      parts_.freed.TakeSurplus(parts_.driver, above, Synchronisations::Count());
  if (!taken.has_value()) return;
  for (const OrderedFree& one : taken->ordered) {
    parts_.driver.cuEventDestroy_v2(one.event);
    parts_.returns.GiveBack(one.block, LeaseReturns::Then::kKeep);
  }
}

void Sweeper::Trim(CUmemoryPool pool, uint64_t bytes_to_keep) {
  if (Exiting()) return;
  const base::MutexLock alone(&giving_surplus_);
  const SynchronizingTurn turn(&parts_.captures);
  if (!turn.granted()) return;
  const auto above = [&](const PoolBytes& waiting) {
    return parts_.allocations.Above(pool, bytes_to_keep, waiting);
  };
  const std::optional<FreedBlocks::Taken> taken = parts_.freed.TakeSurplus(
      parts_.driver, above, std::numeric_limits<uint64_t>::max());
  if (taken.has_value()) GiveBack(taken->ordered);
  if (bytes_to_keep == 0) GiveReservesBack();
}

void Sweeper::GiveReservesBack() {
  for (const LeaseRange& reserve : parts_.allocations.TakeReserves())
    parts_.returns.Release(reserve);
  parts_.kept.ReleaseAll();
}

void Sweeper::Sweep() {
  if (Exiting()) return;
  const SynchronizingTurn turn(&parts_.captures);
  if (!turn.granted()) return;
  std::optional<FreedBlocks::Taken> taken =
      parts_.freed.TakeDue(parts_.driver, Clock::now());
  if (!taken.has_value()) return;
  std::vector<OrderedFree>& old = taken->ordered;
  const auto lost = std::partition(
      old.begin(), old.end(),
      [](const OrderedFree& one) { return one.event != nullptr; });
  for (auto it = lost; it != old.end(); ++it)
    taken->blocks.push_back(it->block);
  old.erase(lost, old.end());
  for (const Block& block : taken->blocks) {
    if (parts_.contexts.Synchronize(block.device, block.home) == CUDA_SUCCESS) {
      parts_.returns.GiveBack(block);
    } else {
      parts_.freed.Add(block);
    }
  }
  GiveBack(old);
}

}  // namespace gmb::preload
