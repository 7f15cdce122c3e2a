// The arena's invariants, for tests.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "client/heap/arena.h"

namespace gmb::internal {

std::string Arena::FaultOf(const Chunk& chunk) const {
  uintptr_t at = chunk.address;
  size_t used = 0;
  const Block* before = nullptr;
  for (const Block* block = chunk.first; block != nullptr;
       block = block->after) {
    if (block->address != at || block->before != before ||
        block->chunk != &chunk) {
      return "blocks of a chunk do not lie one behind the other";
    }
    if (block->bytes == 0 || block->bytes % kBlockBytes != 0)
      return "a block of a wrong size";
    if (block->share->pool != chunk.pool) return "a block of another pool";
    if (before != nullptr && MayMerge(before, block))
      return "free neighbours that were not merged";
    const bool live = block->state == Block::State::kLive;
    if (live != (live_.Find(block->address) == block))
      return "a block is not found, or found when it should not be";
    if (block->state != Block::State::kFree) ++used;
    at += block->bytes;
    before = block;
  }
  if (at != chunk.address + chunk.bytes) return "blocks do not cover a chunk";
  return used == chunk.used ? "" : "a chunk's used blocks are miscounted";
}

std::string Arena::Fault() const {
  Sums sums;
  std::map<const Share*, uint64_t> free_bytes;
  std::map<const Share*, size_t> used;
  for (const auto& [address, chunk] : chunks_) {
    if (std::string fault = FaultOf(*chunk); !fault.empty()) return fault;
    ++sums.chunks;
    sums.chunk_bytes += chunk->bytes;
    if (chunk->used == 0 && chunk->pool == kGeneral)
      sums.empty_bytes += chunk->bytes;
    for (const Block* block = chunk->first; block != nullptr;
         block = block->after) {
      if (block->state != Block::State::kFree) ++used[block->share];
      if (block->state == Block::State::kLive) {
        sums.live_bytes += block->bytes;
        ++sums.live_blocks;
      } else if (block->state == Block::State::kHeld) {
        sums.held_bytes += block->bytes;
      } else {
        free_bytes[block->share] += block->bytes;
      }
    }
  }
  if (sums.chunks != sums_.chunks || sums.chunk_bytes != sums_.chunk_bytes ||
      sums.live_bytes != sums_.live_bytes ||
      sums.live_blocks != sums_.live_blocks ||
      sums.held_bytes != sums_.held_bytes ||
      sums.empty_bytes != sums_.empty_bytes ||
      sums.live_blocks != live_.count()) {
    return "the sums are wrong";
  }
  const auto wrong = [&](const Share& share) {
    uint64_t indexed = 0;
    share.free.ForEach([&](const Block* block) { indexed += block->bytes; });
    return indexed != free_bytes[&share] || indexed != share.free.bytes() ||
           share.used != used[&share];
  };
  for (const auto& [key, share] : shares_.of_streams()) {
    if (wrong(*share))
      return "a stream's blocks are not all indexed or counted";
  }
  for (const auto& [pool, share] : shares_.of_anyone()) {
    if (wrong(*share)) return "anyone's free blocks are not all indexed";
  }
  return "";
}

}  // namespace gmb::internal
