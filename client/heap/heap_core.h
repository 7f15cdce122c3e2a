#ifndef GMB_CLIENT_HEAP_HEAP_CORE_H_
#define GMB_CLIENT_HEAP_HEAP_CORE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/fork_guard.h"
#include "client/heap/arena.h"
#include "client/heap/brief_mutex.h"
#include "client/heap/chunk_source.h"
#include "client/heap/empty_news.h"
#include "client/heap/fence_ledger.h"
#include "client/heap/growth_pace.h"
#include "client/heap/heap_chunks.h"
#include "client/heap/stream_captures.h"
#include "device/stream_fences.h"
#include "gmb/heap.h"

namespace gmb::internal {

// The heap but for its session: an arena behind a lock, its growth, and the
// rules of streams and captures. gmb/heap.h says what its members promise.
// Thread-safe.
//
// Three locks, taken in this order: growth_mu_ by a thread that asks for a
// chunk, so that one lease serves all threads that lack memory; quiet_mu_ by a
// thread that waits for the device, beside which no capture may begin; mu_ for
// a moment.
class HeapCore {
 public:
  struct Options {
    uint64_t least_growth_bytes;
    uint64_t most_growth_bytes;
    absl::Duration wait;
    // The empty chunks' bytes have changed, or ReturnAhead has something to do
    // that it could not do before. Called under the heap's lock.
    EmptyNews::Listener on_empty = nullptr;
    // A heap that grows again within this time asks for more than it needs, and
    // has to be told to give that back. 0: never.
    std::chrono::nanoseconds growth_run{0};
  };

  HeapCore(std::unique_ptr<ChunkSource> source,
           std::unique_ptr<device::StreamFences> fences, Options options);

  [[nodiscard]] absl::StatusOr<void*> Allocate(uint64_t bytes, void* stream);
  // None: the stream of its allocation.
  [[nodiscard]] absl::Status Free(void* address, std::optional<void*> stream);
  [[nodiscard]] absl::Status FreeDone(void* address);
  [[nodiscard]] absl::Status RecordStream(void* address, void* stream);
  [[nodiscard]] absl::Status DetachStream(void* stream);
  [[nodiscard]] absl::Status Prepare(uint64_t bytes);
  uint64_t Trim(uint64_t bytes);
  // Gives back what it asked for ahead of need and has no use for.
  void ReturnAhead();
  [[nodiscard]] HeapStatistics statistics() const;

  [[nodiscard]] absl::StatusOr<PoolId> OpenPool(uint64_t bytes);
  [[nodiscard]] absl::Status BeginCapture(PoolId pool, void* stream);
  [[nodiscard]] absl::Status EndCapture(PoolId pool, void* stream);
  void ClosePool(PoolId pool);

  [[nodiscard]] const ForkGuard& fork_guard() const { return fork_guard_; }

 private:
  friend class HeapCoreTest;  // looks at arena_

  using Clock = std::chrono::steady_clock;
  using Memory = HeapChunks::Memory;

  void* Take(uint64_t bytes, void* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CapturesEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // No stream: for anyone.
  absl::Status FreeWithUsers(Block* block, std::optional<void*> stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Beyond what is free at once: heap_growth.cc.
  absl::StatusOr<void*> AllocateSlowly(uint64_t bytes, void* stream);
  absl::StatusOr<void*> GrowAndTake(uint64_t bytes, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mu_);
  absl::StatusOr<Memory> Acquire(uint64_t bytes, absl::Duration wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mu_);
  void SetWaiting(bool waiting);
  void CountQuestion();
  absl::StatusOr<void*> GrowBy(uint64_t chunk_bytes, size_t ahead,
                               uint64_t bytes, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mu_);
  absl::StatusOr<void*> AddAndTake(std::vector<Memory> memory, uint64_t bytes,
                                   void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mu_);
  absl::StatusOr<void*> TakeWhenQuiet(uint64_t bytes, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mu_);
  uint64_t ReleaseEmpty(uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(quiet_mu_);
  absl::Status OutOfMemory(const absl::Status& why, uint64_t bytes);

  const ForkGuard fork_guard_;
  const Options options_;
  const std::unique_ptr<ChunkSource> source_;
  const std::unique_ptr<device::StreamFences> fences_;

  base::Mutex growth_mu_;
  GrowthPace pace_ ABSL_GUARDED_BY(growth_mu_);
  base::Mutex quiet_mu_;
  mutable BriefMutex mu_;
  Arena arena_ ABSL_GUARDED_BY(mu_);
  HeapChunks chunks_ ABSL_GUARDED_BY(mu_);
  FenceLedger ledger_ ABSL_GUARDED_BY(mu_);
  // The other streams that use a live block.
  std::map<Block*, std::vector<void*>> recorded_ ABSL_GUARDED_BY(mu_);
  PoolId last_pool_ ABSL_GUARDED_BY(mu_) = kGeneral;
  StreamCaptures captures_ ABSL_GUARDED_BY(mu_);
  bool waiting_ ABSL_GUARDED_BY(mu_) = false;  // an Acquire, for others' memory
  EmptyNews news_ ABSL_GUARDED_BY(mu_);
  HeapStatistics counts_
      ABSL_GUARDED_BY(mu_);  // figures that nobody else counts
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_HEAP_CORE_H_
