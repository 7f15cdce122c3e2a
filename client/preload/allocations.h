#ifndef GMB_CLIENT_PRELOAD_ALLOCATIONS_H_
#define GMB_CLIENT_PRELOAD_ALLOCATIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/broker_link.h"
#include "client/preload/home_context.h"
#include "client/preload/live_blocks.h"
#include "client/preload/pool_usage.h"
#include "client/preload/small_blocks.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// The books of the program's allocations: the blocks that it has, the leases
// that they are in, and what each memory pool has of them. Asks neither the
// driver nor the broker. Thread-safe.
class Allocations {
 public:
  // Of one allocation: for which device, in which context, and from which pool,
  // if any.
  struct Source {
    CUdevice device = 0;
    HomeContext home = {};
    CUmemoryPool pool = nullptr;
  };

  Allocations() = default;
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;

  // A block that is a lease of its own.
  void AddLarge(const Source& source, uint64_t bytes, const LeaseRange& lease);
  // A block in a chunk that is there; nothing when none has room.
  [[nodiscard]] std::optional<uint64_t> AddSmall(const Source& source,
                                                 uint64_t bytes);
  // The first block in a chunk that is new.
  [[nodiscard]] uint64_t AddSmallIn(const LeaseRange& chunk,
                                    const Source& source, uint64_t bytes);
  // A block that was taken, and has not gone back, for another allocation.
  void AddAgain(const Block& freed, const Source& source, uint64_t bytes);

  // The block that starts there: the program has it no more, and its memory has
  // not gone back. `ours`: the address is not the driver's to free.
  [[nodiscard]] std::optional<Block> Take(CUdeviceptr start, bool* ours);
  // Those of a context that ends.
  [[nodiscard]] std::vector<Block> TakeOf(const HomeContext& home);
  // The program has it still: it could not be freed.
  void PutBack(const Block& block);
  // Of a block that was taken: the lease that nothing is in any more, if so.
  [[nodiscard]] std::optional<LeaseRange> Give(const Block& block);
  // The chunks that are empty and kept in reserve.
  [[nodiscard]] std::vector<LeaseRange> TakeReserves();
  // Before it is unmapped: its addresses may be another's then.
  void RemoveRange(const LeaseRange& lease);

  // The block that the address is in. `ours` may be null.
  [[nodiscard]] std::optional<Block> Find(CUdeviceptr address,
                                          bool* ours = nullptr);
  // Whether it is of a lease, freed or not.
  [[nodiscard]] bool Contains(CUdeviceptr address);
  // False when the address is none of ours.
  [[nodiscard]] bool GetAddressRange(CUdeviceptr address, CUdeviceptr* start,
                                     size_t* bytes);
  // Whether memory of it was ever leased: then its primary context stays.
  [[nodiscard]] bool LeasedFrom(CUdevice device);

  // The pool that it is from; null for none, or one that is destroyed.
  [[nodiscard]] CUmemoryPool PoolOf(const Block& block);
  // The part of a pool that is served here.
  [[nodiscard]] PoolUsage::Bytes BytesOf(CUmemoryPool pool);
  // The program has set that attribute, to `value`.
  void PoolAttributeSet(CUmemoryPool pool, CUmemPool_attribute what,
                        const void* value);
  // As PoolUsage has it.
  [[nodiscard]] PoolBytes AboveThresholds(const PoolBytes& waiting);
  [[nodiscard]] PoolBytes Above(CUmemoryPool pool, uint64_t kept,
                                const PoolBytes& waiting);
  // Before the driver is to destroy it, and after: whether it has.
  [[nodiscard]] PoolName ForgetPool(CUmemoryPool pool);
  void PoolDestroyed(CUmemoryPool pool, PoolName name, bool destroyed);

  // Of a block that the program has; nothing when it has it no more.
  [[nodiscard]] std::optional<LeaseRange> LeaseOf(const Block& block);
  // Its lease, with another process; the program's gate knows how many are.
  void MarkShared(const Block& block, bool shared);

 private:
  void Serve(const Source& source, Block block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  [[nodiscard]] LeaseRange* FindLease(const Block& block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Mutex mu_;
  LiveBlocks live_ ABSL_GUARDED_BY(mu_);
  PoolUsage pools_ ABSL_GUARDED_BY(mu_);
  std::map<CUdevice, SmallBlocks> small_ ABSL_GUARDED_BY(mu_);
  std::set<CUdevice> leased_from_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_ALLOCATIONS_H_
