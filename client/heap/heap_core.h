#ifndef GMB_CLIENT_HEAP_HEAP_CORE_H_
#define GMB_CLIENT_HEAP_HEAP_CORE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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
#include "client/heap/fence_ledger.h"
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
    std::function<void(uint64_t empty_bytes)> on_empty = nullptr;
    // A heap that grows again within this time asks for more than it needs, and
    // has to be told to give that back. 0: never.
    std::chrono::nanoseconds growth_run{0};
  };

  HeapCore(std::unique_ptr<ChunkSource> source,
           std::unique_ptr<device::StreamFences> fences, Options options);

  [[nodiscard]] absl::StatusOr<void*> Allocate(uint64_t bytes, void* stream);
  // None: the stream of its allocation.
  [[nodiscard]] absl::Status Free(void* address, std::optional<void*> stream);
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
  using Clock = std::chrono::steady_clock;
  using Memory = std::unique_ptr<ChunkMemory>;
  // Of a stream, from its BeginCapture to its EndCapture.
  struct Capture {
    PoolId pool = kGeneral;  // none is under way
    uint32_t number = 0;
  };

  void* Take(uint64_t bytes, void* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Capture CaptureOf(void* stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Again, if something that was asked for ahead may go back now.
  void TellAhead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CapturesEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status FreeRecorded(Block* block, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FreeAmidCaptures(Block* block, void* stream, std::vector<void*> users)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Captures(PoolId pool) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NotLive(void* address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Beyond what is free at once: heap_growth.cc.
  absl::StatusOr<void*> AllocateSlowly(uint64_t bytes, void* stream);
  absl::StatusOr<void*> GrowAndTake(uint64_t bytes, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mu_);
  absl::StatusOr<Memory> Acquire(uint64_t bytes, absl::Duration wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mu_);
  void SetWaiting(bool waiting);
  void CountQuestion();
  size_t ChunksAhead(bool capturing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mu_);
  absl::StatusOr<void*> GrowBy(uint64_t chunk_bytes, size_t ahead,
                               uint64_t bytes, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mu_);
  absl::StatusOr<void*> AddAndTake(std::vector<Memory> memory, uint64_t bytes,
                                   void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mu_);
  absl::StatusOr<void*> TakeWhenQuiet(uint64_t bytes, void* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mu_);
  void AddChunk(Memory memory, PoolId pool) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t ReleaseEmpty(uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(quiet_mu_);
  std::vector<Memory> TakeOut(const std::vector<uint64_t>& ids)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static uint64_t GiveBack(const std::vector<Memory>& memory);
  absl::Status OutOfMemory(const absl::Status& why, uint64_t bytes);

  const ForkGuard fork_guard_;
  const Options options_;
  const std::unique_ptr<ChunkSource> source_;
  const std::unique_ptr<device::StreamFences> fences_;

  base::Mutex growth_mu_;
  std::optional<Clock::time_point> last_growth_ ABSL_GUARDED_BY(growth_mu_);
  // Requests ahead of need were refused until then.
  std::optional<Clock::time_point> none_ahead_before_
      ABSL_GUARDED_BY(growth_mu_);
  base::Mutex quiet_mu_;
  mutable BriefMutex mu_;
  std::map<uint64_t, Memory> memory_ ABSL_GUARDED_BY(mu_);  // by chunk
  uint64_t last_chunk_ ABSL_GUARDED_BY(mu_) = 0;
  // Addresses of chunks that were asked for ahead of need.
  std::vector<uintptr_t> ahead_ ABSL_GUARDED_BY(mu_);
  Arena arena_ ABSL_GUARDED_BY(mu_);
  FenceLedger ledger_ ABSL_GUARDED_BY(mu_);
  // The other streams that use a live block.
  std::map<Block*, std::vector<void*>> recorded_ ABSL_GUARDED_BY(mu_);
  PoolId last_pool_ ABSL_GUARDED_BY(mu_) = kGeneral;
  uint32_t last_capture_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<void*, Capture> captures_ ABSL_GUARDED_BY(mu_);  // by stream
  bool waiting_ ABSL_GUARDED_BY(mu_) = false;  // an Acquire, for others' memory
  uint64_t told_empty_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  HeapStatistics counts_
      ABSL_GUARDED_BY(mu_);  // figures that nobody else counts
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_HEAP_CORE_H_
