#ifndef GMB_HEAP_H_
#define GMB_HEAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmb/client.h"
#include "gmb/options.h"

namespace gmb {

struct HeapOptions {
  // UUID of the device; empty: the broker's only device.
  std::string device;
  // Of the leases. With kDiscard the heap goes on after an eviction, and what
  // was in the blocks may be lost.
  Contents contents = Contents::kPreserve;
  // The heap grows by leases of a quarter to a half of what it has (a power of
  // two), but of at least and at most so many bytes; of more for one block that is
  // larger, of a whole number of blocks for one larger than the least, and of less
  // where the quota leaves no more. With `trim` it asks for two at once when it
  // grows again within 250 ms, and gives the second back where it had no use for
  // it for a second.
  uint64_t least_growth_bytes = uint64_t{64} << 20;
  uint64_t most_growth_bytes = uint64_t{1} << 30;
  // How long an Allocate may wait for memory that others have, when the heap's
  // own and what is free at the broker do not suffice.
  absl::Duration wait = absl::Seconds(5);
  // UUIDs of further devices that may read and write the memory.
  std::vector<std::string> access_from;
  // Leases that no block lies in are given back when the broker asks for
  // memory, before the application's on_trim is called.
  bool trim = true;
};

// Block sizes are as rounded up.
struct HeapStatistics {
  uint64_t allocated_bytes = 0;  // of live blocks
  uint64_t peak_allocated_bytes = 0;
  uint64_t held_bytes = 0;  // freed, while other streams may still use them
  uint64_t leased_bytes = 0;
  uint64_t peak_leased_bytes = 0;
  uint64_t empty_bytes = 0;  // of leases that no block lies in
  uint64_t largest_free_bytes = 0;
  uint64_t blocks = 0;  // live
  uint64_t leases = 0;
  uint64_t allocations = 0;  // that succeeded, so far
  uint64_t frees = 0;
  uint64_t growths = 0;          // leases taken so far
  uint64_t questions = 0;        // and questions to the broker for them
  uint64_t returned_leases = 0;  // and given back while the heap lived
  uint64_t out_of_memory = 0;    // Allocates that failed
};

class GraphPool;
class RmmResource;

// An allocator of one device's memory for one process, over leases: allocating
// and freeing is local and takes a fraction of a microsecond; the broker is
// asked when the heap grows, which it does in few large leases. Thread-safe.
// The Client has to outlive it.
//
// A stream is what the device's programs call it, a CUstream (cudaStream_t),
// and on `host` any value. Null is the legacy default stream, also where the
// program is built with per-thread default streams, of whose calls null is each
// thread's own: it passes streams that it made. cudaStreamPerThread is refused:
// it names another stream in each thread.
//
// Order. Memory may be used by the stream it was allocated for, by others only
// where the program orders them behind it. It is freed in the order of a
// stream: work that was submitted to it before may still run. That stream can
// have the memory again at once, others once an event has shown that it got
// there. Say RecordStream if work on further streams, which the freeing stream
// does not wait for, may still use it.
//
// Gate. The heap never touches the memory, so it needs no scope; the program
// does, as for any lease. Contents may be evicted and come back, at the same
// addresses. A wait for memory in a scope keeps the session active.
//
// Captures (CUDA graphs). See GraphPool. Memory that was allocated before may
// be used in a capture, and has to be kept as long as the graph.
//
// Errors. Allocate: RESOURCE_EXHAUSTED and whatever else the broker refuses a
// lease with, with its ErrorDetail; UNAVAILABLE when the session is over, and
// what the heap has does not suffice. INVALID_ARGUMENT: the address is none of
// a live block of this heap, which is left as it is, or the stream is none.
// FAILED_PRECONDITION in a forked child, always.
class Heap {
 public:
  // Takes no memory yet.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Heap>> Create(
      Client* client, HeapOptions options = {});
  // Gives all leases back, also those that blocks lie in: nobody may use them
  // any more. Graph pools have to be gone. In a forked child it does nothing.
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // At least `bytes`, aligned to 512. Null for 0 bytes.
  [[nodiscard]] absl::StatusOr<void*> Allocate(uint64_t bytes, void* stream);
  // In the order of the stream it was allocated for, or of the one given. Null
  // is OK. After an error of the driver the block is held, until a shortage
  // finds that the driver takes the event after all, or DetachStream.
  [[nodiscard]] absl::Status Free(void* address);
  [[nodiscard]] absl::Status Free(void* address, void* stream);
  // The block, once freed, is used again when the work has ended that is on the
  // stream at that time.
  [[nodiscard]] absl::Status RecordStream(void* address, void* stream);

  // Before a stream, or its context, is destroyed: waits until its work has
  // ended, and forgets it. Blocks that were allocated for it are freed before, or
  // with another stream.
  [[nodiscard]] absl::Status DetachStream(void* stream);

  // Grows, if need be, so that one block of `bytes` can be had at once.
  [[nodiscard]] absl::Status Prepare(uint64_t bytes);
  // Memory for graphs: a lease of its own, for no other allocation.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<GraphPool>> PrepareGraphs(
      uint64_t bytes);

  // Gives leases back that no block lies in, until they are `bytes` together;
  // says how many. Synchronises the device. 0 during captures, and while an
  // Allocate waits for memory.
  uint64_t Trim(uint64_t bytes);

  [[nodiscard]] HeapStatistics statistics() const;
  // UUID of the device.
  [[nodiscard]] const std::string& device() const;

 private:
  friend class GraphPool;
  friend class RmmResource;
  // As Free, where all work on the block is known to have ended, but for that of
  // streams that were recorded, and of graphs that are being captured: any stream
  // may have it then.
  [[nodiscard]] absl::Status FreeDone(void* address);

  struct Impl;
  explicit Heap(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// Memory that CUDA graphs use. Between Begin and End, what is allocated for the
// streams that were begun comes from the pool and from nowhere else, and what
// is freed there goes back to it. It is reserved until the pool is destroyed,
// so that nobody else writes over it when the graphs are launched.
//
// A block that was allocated in a capture may be freed after it, also in a
// later capture of the pool. Streams that RecordStream told of are waited for,
// but for those of the capture itself; so is the stream that it is freed on,
// unless it was allocated for that or that captures in the pool. Graphs of one
// pool share its memory: launch them one after the other, in the order in which
// they were captured. Use one pool for each graph to launch them as you like.
//
// While any capture is under way the heap makes and asks no events, gives no
// lease back, and keeps what would need either: blocks that several streams
// used come back when the last capture has ended. It learns of captures by
// Begin: a capture that allocates nothing is begun, too.
//
// The Heap has to outlive it. Thread-safe.
class GraphPool {
 public:
  // Its graphs are destroyed, and launches of them have ended. Memory that is
  // not freed yet is freed as any other.
  ~GraphPool();
  GraphPool(const GraphPool&) = delete;
  GraphPool& operator=(const GraphPool&) = delete;

  // Before cudaStreamBeginCapture, and for every further stream that joins the
  // capture (waits for an event in it), before that. FAILED_PRECONDITION when
  // the stream has begun already. Waits for a Trim that is under way. With the
  // gate on, enter a scope for a capture first (Client::EnterCapture).
  [[nodiscard]] absl::Status Begin(void* stream);
  // After cudaStreamEndCapture, for every stream that has begun.
  [[nodiscard]] absl::Status End(void* stream);

 private:
  friend class Heap;
  GraphPool(Heap* heap, uint32_t id) : heap_(heap), id_(id) {}

  Heap* const heap_;
  const uint32_t id_;
};

}  // namespace gmb

#endif  // GMB_HEAP_H_
