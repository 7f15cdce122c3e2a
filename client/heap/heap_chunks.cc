// The memory of a heap's chunks, as long as it is the heap's.
#include "client/heap/heap_chunks.h"

#include <algorithm>
#include <utility>

namespace gmb::internal {

void HeapChunks::Add(Memory memory, PoolId pool) {
  const uint64_t id = last_chunk_ + 1;
  const auto address = reinterpret_cast<uintptr_t>(memory->data());
  const uint64_t bytes = memory->size_bytes();
  const auto kept = memory_.emplace(id, std::move(memory)).first;
  try {
    arena_.AddChunk(id, address, bytes, pool);
  } catch (...) {
    memory_.erase(kept);
    throw;
  }
  last_chunk_ = id;
  ++figures_.added;
  figures_.peak_bytes =
      std::max(figures_.peak_bytes, arena_.sums().chunk_bytes);
}

void HeapChunks::AddAhead(Memory memory) {
  ahead_.push_back(reinterpret_cast<uintptr_t>(memory->data()));
  Add(std::move(memory), kGeneral);
}

std::vector<HeapChunks::Memory> HeapChunks::TakeEmpty(uint64_t bytes) {
  return TakeOut(arena_.TakeEmptyChunks(bytes));
}

std::vector<HeapChunks::Memory> HeapChunks::TakeUnusedAhead() {
  std::vector<uint64_t> ids;
  for (const uintptr_t address : std::exchange(ahead_, {})) {
    if (const auto id = arena_.TakeEmptyChunk(address)) ids.push_back(*id);
  }
  return TakeOut(ids);
}

void HeapChunks::KeepUsed() {
  std::erase_if(ahead_,
                [this](uintptr_t chunk) { return arena_.HasUsed(chunk); });
}

std::vector<HeapChunks::Memory> HeapChunks::TakeOut(
    const std::vector<uint64_t>& ids) {
  std::vector<Memory> taken;
  for (const uint64_t id : ids) {
    const auto memory = memory_.find(id);
    // Its address may be another one's soon.
    std::erase(ahead_, reinterpret_cast<uintptr_t>(memory->second->data()));
    taken.push_back(std::move(memory->second));
    memory_.erase(memory);
  }
  figures_.taken_out += ids.size();
  return taken;
}

}  // namespace gmb::internal
