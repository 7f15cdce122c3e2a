// `gmb run`: the blocks that the program has, and the leases that they are in.
#include "client/preload/allocations.h"

#include "client/preload/program_gate.h"

namespace gmb::preload {

using base::MutexLock;

void Allocations::Serve(const Source& source, Block block) {
  block.device = source.device;
  block.home = source.home;
  if (source.pool != nullptr) block.pool = pools_.NameOf(source.pool);
  live_.Add(block);
  pools_.Took(block);
}

void Allocations::AddLarge(const Source& source, uint64_t bytes,
                           const LeaseRange& lease) {
  const MutexLock lock(&mu_);
  live_.AddRange(lease);
  leased_from_.insert(source.device);
  Serve(source, {.start = lease.start, .bytes = bytes, .lease = lease});
}

std::optional<uint64_t> Allocations::AddSmall(const Source& source,
                                              uint64_t bytes) {
  const MutexLock lock(&mu_);
  const std::optional<uint64_t> start = small_[source.device].Take(bytes);
  if (start.has_value())
    Serve(source, {.start = *start, .bytes = bytes, .lease = {}});
  return start;
}

uint64_t Allocations::AddSmallIn(const LeaseRange& chunk, const Source& source,
                                 uint64_t bytes) {
  const MutexLock lock(&mu_);
  live_.AddRange(chunk);
  leased_from_.insert(source.device);
  SmallBlocks& small = small_[source.device];
  small.AddChunk(chunk);
  // Before another thread can take it. The chunk has room for any.
  const uint64_t start = small.Take(bytes).value_or(chunk.start);
  Serve(source, {.start = start, .bytes = bytes, .lease = {}});
  return start;
}

void Allocations::AddAgain(const Block& freed, const Source& source,
                           uint64_t bytes) {
  const MutexLock lock(&mu_);
  pools_.GaveBack(freed);
  Serve(source, {.start = freed.start, .bytes = bytes, .lease = freed.lease});
}

std::optional<Block> Allocations::Take(CUdeviceptr start, bool* ours) {
  const MutexLock lock(&mu_);
  std::optional<Block> block = live_.Take(start);
  *ours = block.has_value() || live_.InRange(start);
  if (block.has_value()) pools_.Freed(*block);
  return block;
}

std::vector<Block> Allocations::TakeOf(const HomeContext& home) {
  const MutexLock lock(&mu_);
  std::vector<Block> taken = live_.TakeOf(home);
  for (const Block& block : taken) pools_.Freed(block);
  return taken;
}

void Allocations::PutBack(const Block& block) {
  const MutexLock lock(&mu_);
  live_.Add(block);
  pools_.TookBack(block);
}

std::optional<LeaseRange> Allocations::Give(const Block& block) {
  const MutexLock lock(&mu_);
  pools_.GaveBack(block);
  if (block.lease.has_value()) return block.lease;
  return small_[block.device].Give(block.start, block.bytes);
}

std::vector<LeaseRange> Allocations::TakeReserves() {
  std::vector<LeaseRange> reserves;
  const MutexLock lock(&mu_);
  for (auto& [device, small] : small_) {
    if (const auto reserve = small.TakeReserve()) reserves.push_back(*reserve);
  }
  return reserves;
}

void Allocations::RemoveRange(const LeaseRange& lease) {
  const MutexLock lock(&mu_);
  live_.RemoveRange(lease);
}

std::optional<Block> Allocations::Find(CUdeviceptr address, bool* ours) {
  const MutexLock lock(&mu_);
  const Block* const block = live_.Find(address);
  if (ours != nullptr) *ours = block != nullptr || live_.InRange(address);
  if (block == nullptr) return std::nullopt;
  return *block;
}

bool Allocations::Contains(CUdeviceptr address) {
  const MutexLock lock(&mu_);
  return live_.InRange(address);
}

bool Allocations::GetAddressRange(CUdeviceptr address, CUdeviceptr* start,
                                  size_t* bytes) {
  const MutexLock lock(&mu_);
  const Block* const block = live_.Find(address);
  if (block == nullptr) return false;
  if (start != nullptr) *start = block->start;
  if (bytes != nullptr) *bytes = block->bytes;
  return true;
}

bool Allocations::LeasedFrom(CUdevice device) {
  const MutexLock lock(&mu_);
  return leased_from_.contains(device);
}

CUmemoryPool Allocations::PoolOf(const Block& block) {
  const MutexLock lock(&mu_);
  return pools_.HandleOf(block.pool);
}

PoolUsage::Bytes Allocations::BytesOf(CUmemoryPool pool) {
  const MutexLock lock(&mu_);
  return pools_.Of(pool);
}

void Allocations::PoolAttributeSet(CUmemoryPool pool, CUmemPool_attribute what,
                                   const void* value) {
  const MutexLock lock(&mu_);
  if (what == CU_MEMPOOL_ATTR_USED_MEM_HIGH) pools_.ResetUsedHigh(pool);
  if (what == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) pools_.ResetReservedHigh(pool);
  if (what == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    pools_.SetThreshold(pool, *static_cast<const cuuint64_t*>(value));
}

PoolBytes Allocations::AboveThresholds(const PoolBytes& waiting) {
  const MutexLock lock(&mu_);
  return pools_.AboveThresholds(waiting);
}

PoolName Allocations::ForgetPool(CUmemoryPool pool) {
  const MutexLock lock(&mu_);
  return pools_.Forget(pool);
}

void Allocations::PoolDestroyed(CUmemoryPool pool, PoolName name,
                                bool destroyed) {
  const MutexLock lock(&mu_);
  if (destroyed) {
    pools_.Destroyed(name);
  } else {
    pools_.NotDestroyed(pool, name);
  }
}

PoolBytes Allocations::Above(CUmemoryPool pool, uint64_t kept,
                             const PoolBytes& waiting) {
  const MutexLock lock(&mu_);
  return pools_.Above(pool, kept, waiting);
}

LeaseRange* Allocations::FindLease(const Block& block) {
  if (live_.Find(block.start) == nullptr) return nullptr;
  LeaseRange* const own = live_.OwnLease(block.start);
  return own != nullptr ? own : small_[block.device].LeaseOf(block.start);
}

std::optional<LeaseRange> Allocations::LeaseOf(const Block& block) {
  const MutexLock lock(&mu_);
  const LeaseRange* const lease = FindLease(block);
  if (lease == nullptr) return std::nullopt;
  return *lease;
}

void Allocations::MarkShared(const Block& block, bool shared) {
  const MutexLock lock(&mu_);
  LeaseRange* const lease = FindLease(block);
  if (lease == nullptr || lease->shared == shared) return;
  lease->shared = shared;
  ProgramGate::Share(shared ? 1 : -1);
}

}  // namespace gmb::preload
