// `gmb run`: small allocations share a lease.
#include "client/preload/small_blocks.h"

#include <algorithm>
#include <iterator>

namespace gmb::preload {
SmallBlocks::Chunks::iterator SmallBlocks::ChunkOf(uint64_t start) {
  return std::prev(chunks_.upper_bound(start));
}

std::optional<uint64_t> SmallBlocks::Take(uint64_t bytes) {
  const uint64_t rounded = RoundUp(bytes);
  const std::optional<uint64_t> start = free_.Take(rounded);
  if (!start.has_value()) return std::nullopt;
  Chunk& chunk = ChunkOf(*start)->second;
  if (chunk.used_bytes == 0) --empty_chunks_;
  chunk.used_bytes += rounded;
  return start;
}

void SmallBlocks::AddChunk(const LeaseRange& chunk) {
  chunks_.emplace(chunk.start, Chunk{.lease = chunk});
  free_.Give(chunk.start, chunk.bytes, chunk.start, chunk.start + chunk.bytes);
  ++empty_chunks_;
}

std::optional<LeaseRange> SmallBlocks::Give(uint64_t start, uint64_t bytes) {
  const auto chunk = ChunkOf(start);
  const LeaseRange& lease = chunk->second.lease;
  const uint64_t rounded = RoundUp(bytes);
  free_.Give(start, rounded, lease.start, lease.start + lease.bytes);
  chunk->second.used_bytes -= rounded;
  if (chunk->second.used_bytes > 0) return std::nullopt;
  ++empty_chunks_;
  if (empty_chunks_ == 1 && !lease.shared) return std::nullopt;
  return RemoveEmpty(chunk);
}

std::optional<LeaseRange> SmallBlocks::TakeReserve() {
  const auto empty = std::find_if(
      chunks_.begin(), chunks_.end(),
      [](const auto& chunk) { return chunk.second.used_bytes == 0; });
  if (empty == chunks_.end()) return std::nullopt;
  return RemoveEmpty(empty);
}

LeaseRange SmallBlocks::RemoveEmpty(Chunks::iterator chunk) {
  const LeaseRange lease = chunk->second.lease;
  free_.Remove(lease.start, lease.bytes);
  chunks_.erase(chunk);
  --empty_chunks_;
  return lease;
}

}  // namespace gmb::preload
