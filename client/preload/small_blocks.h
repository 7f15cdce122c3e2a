#ifndef GMB_CLIENT_PRELOAD_SMALL_BLOCKS_H_
#define GMB_CLIENT_PRELOAD_SMALL_BLOCKS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "base/round_up.h"
#include "client/preload/broker_link.h"
#include "client/preload/free_ranges.h"

namespace gmb::preload {

// Blocks of less than a lease, packed into chunks that are leases of their own:
// the best fit, joined with its neighbours when it is free again. Of one
// device. Not thread-safe.
class SmallBlocks {
 public:
  // The alignment of the driver's own allocations.
  static constexpr uint64_t kAlignmentBytes = 512;
  static constexpr uint64_t kChunkBytes = uint64_t{2} << 20;  // a granule
  [[nodiscard]] static constexpr uint64_t RoundUp(uint64_t bytes) {
    return base::RoundUp(bytes, kAlignmentBytes);
  }

  // Nothing when no chunk has room: add one.
  [[nodiscard]] std::optional<uint64_t> Take(uint64_t bytes);
  void AddChunk(const LeaseRange& chunk);
  // A block that was taken with so many bytes. Returns a chunk to release, if
  // this one is empty now, and another one is already kept in reserve or another
  // process has this one.
  [[nodiscard]] std::optional<LeaseRange> Give(uint64_t start, uint64_t bytes);
  // The chunk that a block which was taken is in.
  [[nodiscard]] LeaseRange* LeaseOf(uint64_t start) {
    return &ChunkOf(start)->second.lease;
  }
  // The empty chunk that is kept in reserve, if any.
  [[nodiscard]] std::optional<LeaseRange> TakeReserve();

 private:
  struct Chunk {
    LeaseRange lease;
    uint64_t used_bytes = 0;
  };
  using Chunks = std::map<uint64_t, Chunk>;  // by start

  Chunks::iterator ChunkOf(uint64_t start);
  LeaseRange RemoveEmpty(Chunks::iterator chunk);

  Chunks chunks_;
  FreeRanges free_;
  size_t empty_chunks_ = 0;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_SMALL_BLOCKS_H_
