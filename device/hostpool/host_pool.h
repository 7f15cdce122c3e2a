#ifndef GMB_DEVICE_HOSTPOOL_HOST_POOL_H_
#define GMB_DEVICE_HOSTPOOL_HOST_POOL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "device/hostpool/host_extent.h"
#include "device/hostpool/machine_memory.h"
#include "device/hostpool/page_locker.h"
#include "device/hostpool/pool_mapping.h"

namespace gmb::device {

// The memory of the host pool: host memory for the contents of evicted and
// backed leases, of one fixed size, for all devices of a broker. It does not
// know which lease has which bytes: the books are kept apart from it
// (broker/hostpool), so that they can be asked under a lock.
//
// Creating it is quick. Threads of its own then *prepare* it, chunk by chunk
// from the start: bring its pages into use (so that an eviction later cannot
// fail for lack of memory) and page-lock them for GPUs. A thread that needs a
// piece earlier calls AwaitPrepared, and its chunks come next.
//
// A pool *on demand* takes nothing before it is needed: a chunk is prepared when
// a piece of it is first wanted, with some that follow, and only while the
// machine has memory to spare.
//
// Thread-safe. Copiers must be destroyed before it.
class HostPool {
 public:
  struct Options {
    // A positive multiple of 2 MiB; a broker without a host pool (size 0) has
    // no such object.
    uint64_t bytes = 0;
    // Prepared in one go; a multiple of 2 MiB. Large enough that the calls cost
    // nothing, small enough that a restore after a restart need not wait long.
    uint64_t chunk_bytes = uint64_t{256} << 20;
    // 0: a quarter of the processors, 1 to 8.
    unsigned threads = 0;
    // Of a pool that another process made (fd()) and that was kept; none: the
    // pool is made anew. Its contents stay.
    base::UniqueFd kept = {};
    // Chunks are prepared as they are wanted, and `ahead_bytes` beyond the last
    // of them. One is declined for now, and tried again when it is next wanted,
    // while less than twice its size is available. No reserved huge pages.
    bool on_demand = false;
    uint64_t ahead_bytes = uint64_t{1} << 30;
    // Of the machine; tests give their own.
    std::function<absl::StatusOr<AvailableMemory>()> available = [] {
      return ReadAvailableMemory();
    };
  };

  struct Progress {
    uint64_t bytes = 0;
    uint64_t prepared_bytes = 0;  // in use; the rest of them follows
    uint64_t locked_bytes = 0;    // page-locked, of the prepared
    uint64_t failed_bytes = 0;    // cannot be used: no memory
    // Nothing is being prepared, nor will be before it is wanted.
    bool done = false;
    // The first failure, empty when all is well. Memory that could not be
    // page-locked is used nevertheless; copies there are slower.
    std::string problem;
  };

  // Of page-locking, which takes memory of the device as well.
  struct LockProgress {
    uint64_t begun_bytes = 0;
    uint64_t ended_bytes = 0;
  };

  // `locker` may be null: without GPUs nothing needs page-locking. Errors as
  // PoolMapping::Create, or with a kept one PoolMapping::Adopt.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<HostPool>> Create(
      Options options, std::unique_ptr<PageLocker> locker);

  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  // Waits for chunks in hand; unlocks and gives back everything.
  ~HostPool();

  [[nodiscard]] uint64_t size_bytes() const { return mapping_.size_bytes(); }
  // No copy may cross from one chunk to another: they are page-locked apart.
  [[nodiscard]] uint64_t chunk_bytes() const { return options_.chunk_bytes; }
  [[nodiscard]] char* At(uint64_t offset) const {
    return mapping_.data() + offset;
  }
  // Of its memory, for a process that keeps it. The pool's own.
  [[nodiscard]] int fd() const { return mapping_.fd(); }
  [[nodiscard]] PageKind page_kind() const { return mapping_.page_kind(); }
  [[nodiscard]] const std::string& page_note() const {
    return mapping_.page_note();
  }
  [[nodiscard]] bool on_demand() const { return options_.on_demand; }
  [[nodiscard]] Progress progress() const;
  [[nodiscard]] LockProgress lock_progress() const;

  // Has the chunks that `piece` touches prepared next. Does not wait.
  void Want(const HostExtent& piece);
  // The same, and blocks until every chunk that `piece` touches is prepared;
  // for those that are it takes a lock and no more. RESOURCE_EXHAUSTED when the
  // machine had no memory for one, or none to spare: do not touch it.
  // INVALID_ARGUMENT beyond the pool's end.
  [[nodiscard]] absl::Status AwaitPrepared(const HostExtent& piece);

 private:
  enum class State {
    kWaiting,
    kInHand,
    kPrepared,
    kLocked,
    kFailed,
    kDeclined  // until it is wanted again
  };

  HostPool(Options options, PoolMapping mapping,
           std::unique_ptr<PageLocker> locker);

  // The first and the last chunk that `piece`, not empty, touches.
  struct Chunks {
    size_t first;
    size_t last;
  };
  [[nodiscard]] Chunks ChunksOf(const HostExtent& piece) const;
  [[nodiscard]] bool Contains(const HostExtent& piece) const;
  void PrepareChunks();
  // Takes the next chunk to prepare in hand, and waits for one in a pool on
  // demand; none: there is none, and none will be.
  std::optional<size_t> TakeChunk();
  // The next chunk to prepare, or chunks_.size().
  size_t NextChunk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether the machine has a chunk to spare that is not in use yet.
  [[nodiscard]] absl::Status CheckSpare(const HostExtent& chunk) const;
  [[nodiscard]] HostExtent ChunkExtent(size_t chunk) const;
  absl::Status Lock(const HostExtent& extent);
  void Decline(size_t chunk, const absl::Status& why);
  void Record(size_t chunk, const absl::Status& populated,
              const absl::Status& locked);
  [[nodiscard]] bool IsDone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const PoolMapping mapping_;
  const std::unique_ptr<PageLocker> locker_;

  mutable base::Mutex mu_;
  base::CondVar changed_;
  std::vector<State> chunks_ ABSL_GUARDED_BY(mu_);
  std::deque<size_t> wanted_ ABSL_GUARDED_BY(mu_);  // by AwaitPrepared
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;            // all before it are begun
  size_t end_ ABSL_GUARDED_BY(mu_);  // none from here on is prepared unasked
  std::string declined_ ABSL_GUARDED_BY(mu_);  // why one was, last
  Progress progress_ ABSL_GUARDED_BY(mu_);
  LockProgress lock_progress_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOSTPOOL_HOST_POOL_H_
