#ifndef GMB_CLIENT_PRELOAD_LIVE_BLOCKS_H_
#define GMB_CLIENT_PRELOAD_LIVE_BLOCKS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "client/preload/broker_link.h"
#include "client/preload/home_context.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// A memory pool that an allocation was made from.
using PoolName = uint64_t;
inline constexpr PoolName kNoPool = 0;
using PoolBytes = std::map<PoolName, uint64_t>;

// An allocation that was served.
struct Block {
  uint64_t start = 0;
  uint64_t bytes = 0;  // as asked for
  CUdevice device = 0;
  HomeContext home = {};
  // Its own; nothing when it is part of a chunk of SmallBlocks.
  std::optional<LeaseRange> lease;
  PoolName pool = kNoPool;
};

// The blocks that the program has, and the address ranges that are leased. Not
// thread-safe.
class LiveBlocks {
 public:
  void Add(const Block& block) { blocks_.insert_or_assign(block.start, block); }
  // The block that starts there, which is the program's no longer.
  [[nodiscard]] std::optional<Block> Take(uint64_t start);
  // Those of a context.
  [[nodiscard]] std::vector<Block> TakeOf(const HomeContext& home);
  // The block that the address is in.
  [[nodiscard]] const Block* Find(uint64_t address) const;
  // Of the block that starts there; null: it has none of its own.
  [[nodiscard]] LeaseRange* OwnLease(uint64_t start);

  void AddRange(const LeaseRange& lease) { ranges_[lease.start] = lease.bytes; }
  void RemoveRange(const LeaseRange& lease) { ranges_.erase(lease.start); }
  // Whether it lies in leased memory: then it is not the driver's to free.
  [[nodiscard]] bool InRange(uint64_t address) const;

 private:
  std::map<uint64_t, Block> blocks_;     // by start
  std::map<uint64_t, uint64_t> ranges_;  // start -> bytes
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_LIVE_BLOCKS_H_
