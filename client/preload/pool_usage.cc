// `gmb run`: what a program reads about the memory of its pools.
#include "client/preload/pool_usage.h"

#include <algorithm>
#include <limits>

#include "base/round_up.h"
#include "client/preload/ordered_frees.h"
#include "client/preload/small_blocks.h"

namespace gmb::preload {
namespace {

uint64_t BytesOf(const PoolBytes& pools, PoolName name) {
  const auto found = pools.find(name);
  return found == pools.end() ? 0 : found->second;
}

}  // namespace

uint64_t PoolUsage::Counts::reserved() const {
  return held_large + base::RoundUp(held_small, SmallBlocks::kChunkBytes);
}

void PoolUsage::Counts::Mark() {
  used_high = std::max(used_high, used);
  reserved_high = std::max(reserved_high, reserved());
}

PoolName PoolUsage::NameOf(CUmemoryPool pool) {
  const auto [known, is_new] = names_.try_emplace(pool, last_name_ + 1);
  if (is_new) ++last_name_;
  return known->second;
}

CUmemoryPool PoolUsage::HandleOf(PoolName name) const {
  for (const auto& [handle, its_name] : names_) {
    if (its_name == name) return handle;
  }
  return nullptr;
}

PoolName PoolUsage::Forget(CUmemoryPool pool) {
  const auto known = names_.find(pool);
  if (known == names_.end()) return kNoPool;
  const PoolName name = known->second;
  names_.erase(known);
  return name;
}

// The driver's pool stays until its last block is freed.
void PoolUsage::Destroyed(PoolName name) {
  Counts* const counts = Find(name);
  if (counts == nullptr) return;
  counts->destroyed = true;
  counts->threshold = 0;
  if (counts->reserved() == 0) counts_.erase(name);
}

void PoolUsage::NotDestroyed(CUmemoryPool pool, PoolName name) {
  if (name == kNoPool) return;
  if (!names_.try_emplace(pool, name).second) Destroyed(name);
}

void PoolUsage::SetThreshold(CUmemoryPool pool, uint64_t bytes) {
  counts_[NameOf(pool)].threshold = bytes;
}

PoolBytes PoolUsage::AboveThresholds(const PoolBytes& waiting) const {
  PoolBytes above = {{kNoPool, std::numeric_limits<uint64_t>::max()}};
  for (const auto& [name, counts] : counts_) {
    const uint64_t stays = counts.held_live + BytesOf(waiting, name);
    if (stays > counts.threshold) above[name] = stays - counts.threshold;
  }
  return above;
}

void PoolUsage::Took(const Block& block) {
  if (block.pool == kNoPool) return;
  Counts& counts = counts_[block.pool];
  (block.lease.has_value() ? counts.held_large : counts.held_small) +=
      HeldBytes(block);
  TookBack(block);
}

void PoolUsage::TookBack(const Block& block) {
  Counts* const counts = Find(block.pool);
  if (counts == nullptr) return;
  counts->used += SmallBlocks::RoundUp(block.bytes);
  counts->held_live += HeldBytes(block);
  counts->Mark();
}

void PoolUsage::Freed(const Block& block) {
  Counts* const counts = Find(block.pool);
  if (counts == nullptr) return;
  counts->used -= SmallBlocks::RoundUp(block.bytes);
  counts->held_live -= HeldBytes(block);
}

void PoolUsage::GaveBack(const Block& block) {
  Counts* const counts = Find(block.pool);
  if (counts == nullptr) return;
  (block.lease.has_value() ? counts->held_large : counts->held_small) -=
      HeldBytes(block);
  if (counts->destroyed && counts->reserved() == 0) counts_.erase(block.pool);
}

PoolBytes PoolUsage::Above(CUmemoryPool pool, uint64_t kept,
                           const PoolBytes& waiting) const {
  const auto name = names_.find(pool);
  if (name == names_.end()) return {};
  const auto found = counts_.find(name->second);
  if (found == counts_.end()) return {};
  const uint64_t stays =
      found->second.held_live + BytesOf(waiting, name->second);
  if (stays <= kept) return {};
  return {{name->second, stays - kept}};
}

PoolUsage::Bytes PoolUsage::Of(CUmemoryPool pool) const {
  const auto name = names_.find(pool);
  if (name == names_.end()) return {};
  const auto found = counts_.find(name->second);
  if (found == counts_.end()) return {};
  const Counts& counts = found->second;
  return {.used = counts.used,
          .reserved = counts.reserved(),
          .used_high = counts.used_high,
          .reserved_high = counts.reserved_high};
}

void PoolUsage::ResetUsedHigh(CUmemoryPool pool) {
  Counts* const counts = Find(pool);
  if (counts != nullptr) counts->used_high = counts->used;
}

void PoolUsage::ResetReservedHigh(CUmemoryPool pool) {
  Counts* const counts = Find(pool);
  if (counts != nullptr) counts->reserved_high = counts->reserved();
}

PoolUsage::Counts* PoolUsage::Find(PoolName name) {
  const auto found = counts_.find(name);
  return found == counts_.end() ? nullptr : &found->second;
}

PoolUsage::Counts* PoolUsage::Find(CUmemoryPool pool) {
  const auto name = names_.find(pool);
  return name == names_.end() ? nullptr : Find(name->second);
}

}  // namespace gmb::preload
