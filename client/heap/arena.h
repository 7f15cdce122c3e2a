#ifndef GMB_CLIENT_HEAP_ARENA_H_
#define GMB_CLIENT_HEAP_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/heap/address_table.h"
#include "client/heap/block.h"
#include "client/heap/shares.h"
#include "client/heap/spare_blocks.h"

namespace gmb::internal {

// A range that is cut into blocks: what one lease is to the heap.
struct Chunk {
  uint64_t id = 0;
  uintptr_t address = 0;
  uint64_t bytes = 0;
  PoolId pool = kGeneral;
  Block* first = nullptr;
  size_t used = 0;  // live and held blocks
};

// Cuts chunks into blocks, keeps what is free by size and by stream, and merges
// neighbours. Pure: it never touches the memory, knows no clock, lock, driver
// or broker, and is told what streams have done. Not thread-safe. May throw
// bad_alloc, and is as before then.
//
// A block that a stream has freed is that stream's: it may have it again at
// once, since work on a stream runs in order. Once the stream has reached a
// mark put on it after the free, the block is anyone's. Neighbours merge when
// they are the same stream's, or one of them is anyone's; then the whole is the
// stream's. Small blocks are cut from the end of a free one and large ones from
// its beginning, so that small ones gather and do not break up the large.
class Arena {
 public:
  static constexpr uint64_t kSmallBytes = uint64_t{1} << 20;
  // Larger requests fail: 64 TiB, as much as a lease may have.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 46;

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The bytes that a request of `bytes` (1 to kMostBytes) takes.
  [[nodiscard]] static uint64_t RoundUp(uint64_t bytes);

  // `bytes` is a multiple of kBlockBytes, not 0, and so is the address. The id
  // is the caller's, and unique.
  void AddChunk(uint64_t id, uintptr_t address, uint64_t bytes,
                PoolId pool = kGeneral);
  // Takes chunks of kGeneral without a used block out, largest first, until
  // they are `bytes` together or there are no more; their ids.
  [[nodiscard]] std::vector<uint64_t> TakeEmptyChunks(uint64_t bytes);
  // The same for the one that begins there; none: it is not there, or is used.
  [[nodiscard]] std::optional<uint64_t> TakeEmptyChunk(uintptr_t address);
  // The pool's chunks are everybody's from now on. Its free blocks stay their
  // streams': a stream may still be at work on a block that it freed after a
  // capture.
  void DissolvePool(PoolId pool);

  // `bytes` is a result of RoundUp. Null: nothing that fits is free for the
  // stream.
  [[nodiscard]] Block* Allocate(uint64_t bytes, void* stream,
                                PoolId pool = kGeneral);
  // Whether Allocate of a stream that never freed would find it.
  [[nodiscard]] bool HasForAnyone(uint64_t bytes, PoolId pool = kGeneral);
  // Whether a block lies in the chunk that begins there.
  [[nodiscard]] bool HasUsed(uintptr_t chunk) const;
  // The live block that begins there, or null.
  [[nodiscard]] Block* Find(uintptr_t address) const {
    return live_.Find(address);
  }
  // Whether the address lies in a chunk.
  [[nodiscard]] bool Owns(uintptr_t address) const;
  // A live or held block is the stream's from now on.
  void Free(Block* block, void* stream);
  // The same, when no stream's work may still use it.
  void FreeForAnyone(Block* block);
  // A live block is freed later; it is no longer found.
  void Hold(Block* block);

  // A mark is put on the stream: its number, for Reached.
  [[nodiscard]] uint64_t Mark(void* stream);
  // The stream has reached that mark.
  void Reached(void* stream, uint64_t mark);
  // No work on the pool's blocks that are free is under way any more.
  void SettlePool(PoolId pool);
  // Nor is any of the stream's, in all pools but kGeneral: nothing was freed on
  // it since its work ended. Nothing is kept of the stream but what its blocks,
  // if it has any, need, and marks: `marked` says that one is on it.
  void EndStream(void* stream, bool marked);

  struct Sums {
    uint64_t chunk_bytes = 0;
    uint64_t live_bytes = 0;
    uint64_t held_bytes = 0;
    uint64_t empty_bytes = 0;  // of kGeneral's chunks without a used block
    size_t chunks = 0;
    size_t live_blocks = 0;
  };
  [[nodiscard]] const Sums& sums() const { return sums_; }
  // The free blocks of streams and of anyone.
  [[nodiscard]] const Shares& shares() const { return shares_; }

  // Its first fault, or "": walks everything, for tests.
  [[nodiscard]] std::string Fault() const;
  // For tests.
  [[nodiscard]] const std::map<uintptr_t, std::unique_ptr<Chunk>>& chunks()
      const {
    return chunks_;
  }

 private:
  Block* Cut(Block* block, uint64_t bytes);
  void PutBack(Block* block, Share* share);
  static bool MayMerge(const Block* left, const Block* right);
  Block* MergeWithNext(Block* left);
  void SettleShare(Share* share, uint64_t mark);
  void TakeOut(const Chunk& chunk);
  void CountUsed(Chunk* chunk, int change);
  std::string FaultOf(const Chunk& chunk) const;

  std::map<uintptr_t, std::unique_ptr<Chunk>> chunks_;  // by address
  Shares shares_;
  AddressTable live_;
  SpareBlocks spare_;
  Sums sums_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_ARENA_H_
