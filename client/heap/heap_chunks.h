#ifndef GMB_CLIENT_HEAP_HEAP_CHUNKS_H_
#define GMB_CLIENT_HEAP_HEAP_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "client/heap/arena.h"
#include "client/heap/chunk_source.h"

namespace gmb::internal {

// The memory behind an arena's chunks: what was added to the arena is kept here
// until it is taken out of it. Knows which chunks were asked for ahead of need.
// Not thread-safe; gives nothing back to the broker itself.
class HeapChunks {
 public:
  using Memory = std::unique_ptr<ChunkMemory>;
  struct Figures {
    uint64_t added = 0;
    uint64_t taken_out = 0;
    uint64_t peak_bytes = 0;  // of all chunks together
  };

  // The arena outlives it.
  explicit HeapChunks(Arena* arena) : arena_(*arena) {}
  HeapChunks(const HeapChunks&) = delete;
  HeapChunks& operator=(const HeapChunks&) = delete;

  void Add(Memory memory, PoolId pool);
  // One of several that were had at once, some of which nobody may need.
  void AddAhead(Memory memory);

  // Empty ones, which the arena has no more: largest first, until they are
  // `bytes` together or there are no more.
  [[nodiscard]] std::vector<Memory> TakeEmpty(uint64_t bytes);
  // The empty ones of those that were asked for ahead.
  [[nodiscard]] std::vector<Memory> TakeUnusedAhead();

  [[nodiscard]] bool HasAhead() const { return !ahead_.empty(); }
  // They are not ahead of need any more: those that a block lies in, or all.
  void KeepUsed();
  void KeepAll() { ahead_.clear(); }

  [[nodiscard]] const Figures& figures() const { return figures_; }

 private:
  std::vector<Memory> TakeOut(const std::vector<uint64_t>& ids);

  Arena& arena_;
  std::map<uint64_t, Memory> memory_;  // by chunk
  uint64_t last_chunk_ = 0;
  std::vector<uintptr_t> ahead_;  // addresses of chunks
  Figures figures_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_HEAP_CHUNKS_H_
