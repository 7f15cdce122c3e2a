#ifndef GMB_CLIENT_PRELOAD_POOL_USAGE_H_
#define GMB_CLIENT_PRELOAD_POOL_USAGE_H_

#include <cstdint>
#include <map>
#include <unordered_map>

#include "client/preload/live_blocks.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// The bytes of each memory pool that are served from leases, as a program reads
// them from the pool's attributes. Not thread-safe.
//
// Small blocks share chunks with the rest of the program. A pool has as many
// chunks reserved as its own small blocks would fill.
class PoolUsage {
 public:
  struct Bytes {
    uint64_t used = 0;      // the program has them
    uint64_t reserved = 0;  // and those that it freed and are kept for it
    uint64_t used_high = 0;
    uint64_t reserved_high = 0;
  };

  // The pool's name in blocks: its handle may be another pool's later.
  [[nodiscard]] PoolName NameOf(CUmemoryPool pool);
  // Before the driver is to destroy a pool; its name, or kNoPool. Then one of these
  // two: it has, or it has refused. A pool that it refused has its name again, but
  // where its handle was given another one meanwhile.
  [[nodiscard]] PoolName Forget(CUmemoryPool pool);
  void Destroyed(PoolName name);
  void NotDestroyed(CUmemoryPool pool, PoolName name);
  // Null for one that is destroyed, and for none.
  [[nodiscard]] CUmemoryPool HandleOf(PoolName name) const;

  // The changes of a block; one of no pool is not counted.
  void Took(const Block& block);
  void Freed(const Block& block);     // but kept
  void TookBack(const Block& block);  // the free failed
  void GaveBack(const Block& block);  // freed before, and kept no longer

  [[nodiscard]] Bytes Of(CUmemoryPool pool) const;
  // The pool holds on to so much. The driver's own number, noted when the program
  // sets it: a pool may end while the driver is asked.
  void SetThreshold(CUmemoryPool pool, uint64_t bytes);
  // The bytes of each pool above its threshold, and no bound for what is of none:
  // so much of what is freed the driver would give back at a synchronisation. The
  // program's count, and those of `waiting`, which are freed and nobody's yet.
  // Others are on their way back and do not. Small blocks count as they are, like
  // what is taken of them to give back.
  [[nodiscard]] PoolBytes AboveThresholds(const PoolBytes& waiting) const;
  // Of this pool, those above so much.
  [[nodiscard]] PoolBytes Above(CUmemoryPool pool, uint64_t kept,
                                const PoolBytes& waiting) const;
  // The high marks begin anew at what there is now.
  void ResetUsedHigh(CUmemoryPool pool);
  void ResetReservedHigh(CUmemoryPool pool);

 private:
  struct Counts {
    uint64_t used = 0;
    uint64_t held_large = 0;
    uint64_t held_small = 0;
    uint64_t held_live = 0;  // of both, those that the program has
    uint64_t used_high = 0;
    uint64_t reserved_high = 0;
    uint64_t threshold = 0;  // as the driver's pools have it at first
    bool destroyed = false;

    [[nodiscard]] uint64_t reserved() const;  // as the program reads it
    void Mark();
  };

  Counts* Find(PoolName name);
  Counts* Find(CUmemoryPool pool);

  std::unordered_map<CUmemoryPool, PoolName> names_;
  std::map<PoolName, Counts> counts_;
  PoolName last_name_ = kNoPool;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_POOL_USAGE_H_
