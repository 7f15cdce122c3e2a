// The heap's free memory: finds a block, joins free neighbours.
#include "client/heap/arena.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/round_up.h"

namespace gmb::internal {
namespace {

// Large blocks in coarser steps: what is left over between them is of use.
constexpr uint64_t kLargeStep = uint64_t{64} << 10;

bool IsUsed(const Block* block) { return block->state != Block::State::kFree; }

}  // namespace

uint64_t Arena::RoundUp(uint64_t bytes) {
  const uint64_t step = bytes < kSmallBytes ? kBlockBytes : kLargeStep;
  return base::RoundUp(bytes, step);
}

void Arena::AddChunk(uint64_t id, uintptr_t address, uint64_t bytes,
                     PoolId pool) {
  spare_.Reserve();
  Share* const anyone = shares_.Anyone(pool);
  auto made = std::make_unique<Chunk>();
  Chunk* const chunk = made.get();
  chunks_.emplace(address, std::move(made));
  chunk->id = id;
  chunk->address = address;
  chunk->bytes = bytes;
  chunk->pool = pool;
  Block* const block = spare_.Take();
  block->address = address;
  block->bytes = bytes;
  block->chunk = chunk;
  block->share = anyone;
  chunk->first = block;
  anyone->free.Insert(block);
  sums_.chunk_bytes += bytes;
  ++sums_.chunks;
  if (pool == kGeneral) sums_.empty_bytes += bytes;
}

std::vector<uint64_t> Arena::TakeEmptyChunks(uint64_t bytes) {
  std::vector<const Chunk*> empty;
  for (const auto& [address, chunk] : chunks_) {
    if (chunk->used == 0 && chunk->pool == kGeneral)
      empty.push_back(chunk.get());
  }
  std::stable_sort(
      empty.begin(), empty.end(),
      [](const Chunk* a, const Chunk* b) { return a->bytes > b->bytes; });
  std::vector<uint64_t> taken;
  taken.reserve(empty.size());
  uint64_t sum = 0;
  for (const Chunk* chunk : empty) {
    if (sum >= bytes) break;
    sum += chunk->bytes;
    taken.push_back(chunk->id);
    TakeOut(*chunk);
  }
  return taken;
}

bool Arena::HasUsed(uintptr_t chunk) const {
  const auto found = chunks_.find(chunk);
  return found != chunks_.end() && found->second->used > 0;
}

std::optional<uint64_t> Arena::TakeEmptyChunk(uintptr_t address) {
  const auto found = chunks_.find(address);
  if (found == chunks_.end() || found->second->used > 0 ||
      found->second->pool != kGeneral) {
    return std::nullopt;
  }
  const uint64_t id = found->second->id;
  TakeOut(*found->second);
  return id;
}

void Arena::TakeOut(const Chunk& chunk) {
  for (Block* block = chunk.first; block != nullptr;) {
    Block* const after = block->after;
    block->share->free.Remove(block);
    spare_.Return(block);
    block = after;
  }
  sums_.chunk_bytes -= chunk.bytes;
  sums_.empty_bytes -= chunk.bytes;
  --sums_.chunks;
  chunks_.erase(chunk.address);
}

void Arena::DissolvePool(PoolId pool) {
  for (const auto& [address, chunk] : chunks_) {
    if (chunk->pool != pool) continue;
    for (Block* block = chunk->first; block != nullptr; block = block->after) {
      Share* const from = block->share;
      Share* const to = from->anyone ? shares_.Anyone(kGeneral)
                                     : shares_.Of(kGeneral, from->stream);
      block->share = to;
      if (IsUsed(block)) {
        --from->used;
        ++to->used;
        continue;
      }
      from->free.Remove(block);
      block->marks = to->marks;
      if (!to->anyone) to->freed_since_mark = true;
      to->free.Insert(block);
    }
    chunk->pool = kGeneral;
    if (chunk->used == 0) sums_.empty_bytes += chunk->bytes;
  }
  shares_.EndPool(pool);
}

void Arena::CountUsed(Chunk* chunk, int change) {
  const bool was_empty = chunk->used == 0;
  chunk->used += static_cast<size_t>(change);
  if (chunk->pool != kGeneral) return;
  if (was_empty) {
    sums_.empty_bytes -= chunk->bytes;
  } else if (chunk->used == 0) {
    sums_.empty_bytes += chunk->bytes;
  }
}

Block* Arena::Allocate(uint64_t bytes, void* stream, PoolId pool) {
  spare_.Reserve();
  live_.MakeRoom();
  Share* const own = shares_.Of(pool, stream);
  const Share* const anyone = shares_.Anyone(pool);
  Block* best = own->free.Find(bytes);
  Block* const other = anyone->free.Find(bytes);
  if (best == nullptr || (other != nullptr && other->bytes < best->bytes))
    best = other;
  if (best == nullptr) return nullptr;
  Block* const block = Cut(best, bytes);
  block->share = own;
  ++own->used;
  block->state = Block::State::kLive;
  CountUsed(block->chunk, 1);
  live_.Insert(block);
  sums_.live_bytes += block->bytes;
  ++sums_.live_blocks;
  return block;
}

bool Arena::HasForAnyone(uint64_t bytes, PoolId pool) {
  return shares_.Anyone(pool)->free.Find(bytes) != nullptr;
}

bool Arena::Owns(uintptr_t address) const {
  auto above = chunks_.upper_bound(address);
  if (above == chunks_.begin()) return false;
  const Chunk& chunk = *std::prev(above)->second;
  return address - chunk.address < chunk.bytes;
}

// Takes `bytes` out of a free block; what is left over stays free.
Block* Arena::Cut(Block* block, uint64_t bytes) {
  FreeIndex& free = block->share->free;
  free.Remove(block);
  if (block->bytes == bytes) return block;
  Block* const second = spare_.Take();
  const bool small = bytes < kSmallBytes;
  const uint64_t first_bytes = small ? block->bytes - bytes : bytes;
  second->address = block->address + first_bytes;
  second->bytes = block->bytes - first_bytes;
  second->chunk = block->chunk;
  second->share = block->share;
  second->marks = block->marks;
  second->before = block;
  second->after = block->after;
  if (second->after != nullptr) second->after->before = second;
  block->after = second;
  block->bytes = first_bytes;
  free.Insert(small ? block : second);
  return small ? second : block;
}

void Arena::Hold(Block* block) {
  live_.Erase(block);
  block->state = Block::State::kHeld;
  sums_.live_bytes -= block->bytes;
  sums_.held_bytes += block->bytes;
  --sums_.live_blocks;
}

void Arena::Free(Block* block, void* stream) {
  Share* const share = shares_.Of(block->share->pool, stream);
  share->freed_since_mark = true;
  PutBack(block, share);
}

void Arena::FreeForAnyone(Block* block) {
  PutBack(block, shares_.Anyone(block->share->pool));
}

void Arena::PutBack(Block* block, Share* share) {
  if (block->state == Block::State::kLive) {
    live_.Erase(block);
    sums_.live_bytes -= block->bytes;
    --sums_.live_blocks;
  } else {
    sums_.held_bytes -= block->bytes;
  }
  CountUsed(block->chunk, -1);
  --block->share->used;
  block->state = Block::State::kFree;
  block->recorded = false;
  block->share = share;
  block->marks = share->marks;
  if (block->after != nullptr && MayMerge(block, block->after)) {
    block->after->share->free.Remove(block->after);
    block = MergeWithNext(block);
  }
  if (block->before != nullptr && MayMerge(block->before, block)) {
    block->before->share->free.Remove(block->before);
    block = MergeWithNext(block->before);
  }
  block->share->free.Insert(block);
}

bool Arena::MayMerge(const Block* left, const Block* right) {
  return !IsUsed(left) && !IsUsed(right) &&
         (left->share == right->share || left->share->anyone ||
          right->share->anyone);
}

// Neither is in an index; the left one stays.
Block* Arena::MergeWithNext(Block* left) {
  Block* const right = left->after;
  if (left->share == right->share) {
    left->marks = std::max(left->marks, right->marks);
  } else if (left->share->anyone) {
    left->share = right->share;
    left->marks = right->marks;
  }
  left->bytes += right->bytes;
  left->after = right->after;
  if (left->after != nullptr) left->after->before = left;
  spare_.Return(right);
  return left;
}

uint64_t Arena::Mark(void* stream) {
  Share* const share = shares_.Of(kGeneral, stream);
  share->freed_since_mark = false;
  return ++share->marks;
}

void Arena::Reached(void* stream, uint64_t mark) {
  SettleShare(shares_.Of(kGeneral, stream), mark);
}

void Arena::SettlePool(PoolId pool) {
  for (const auto& [key, share] : shares_.of_streams()) {
    if (key.first == pool) SettleShare(share.get(), ~uint64_t{0});
  }
}

void Arena::EndStream(void* stream, bool marked) {
  for (const auto& [key, share] : shares_.of_streams()) {
    if (key.first != kGeneral && key.second == stream)
      SettleShare(share.get(), ~uint64_t{0});
  }
  if (!marked) shares_.Forget(stream);
}

void Arena::SettleShare(Share* share, uint64_t mark) {
  Share* const anyone = shares_.Anyone(share->pool);
  std::vector<Block*> done;
  share->free.ForEach([&](Block* block) {
    if (block->marks < mark) done.push_back(block);
  });
  for (Block* block : done) {
    // As if it were freed again, for anyone. (Merging cannot take one of
    // `done`: neighbours of one share were merged before.)
    share->free.Remove(block);
    block->state = Block::State::kHeld;
    sums_.held_bytes += block->bytes;
    CountUsed(block->chunk, 1);
    ++share->used;
    PutBack(block, anyone);
  }
}

}  // namespace gmb::internal
