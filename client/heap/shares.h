#ifndef GMB_CLIENT_HEAP_SHARES_H_
#define GMB_CLIENT_HEAP_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/heap/free_index.h"

namespace gmb::internal {

// Which chunks an allocation may come from: 0 is everybody's, others are
// reserved for graphs.
using PoolId = uint32_t;
inline constexpr PoolId kGeneral = 0;

// Free blocks that one stream of a pool may reuse at once, or any stream.
struct Share {
  PoolId pool = kGeneral;
  void* stream = nullptr;
  bool anyone = false;
  // How many marks were put on the stream: a block that was freed before the
  // mark number n is done with when the stream has reached that mark.
  uint64_t marks = 0;
  bool freed_since_mark = false;
  size_t used = 0;  // live and held blocks that were allocated for the stream
  FreeIndex free;
};

// The shares of all pools: each stream's, and anyone's. They come about when
// they are asked for, and stay until their pool ends, or their stream. Not
// thread-safe. May throw bad_alloc, and is as before then.
class Shares {
 public:
  using OfStreams = std::map<std::pair<PoolId, void*>, std::unique_ptr<Share>>;
  using OfAnyone = std::map<PoolId, std::unique_ptr<Share>>;

  Shares() : general_(FindAnyone(kGeneral)) {}
  Shares(const Shares&) = delete;
  Shares& operator=(const Shares&) = delete;

  [[nodiscard]] Share* Of(PoolId pool, void* stream) {
    if (last_ != nullptr && last_->stream == stream && last_->pool == pool)
      return last_;
    return last_ = Find(pool, stream);
  }
  [[nodiscard]] Share* Anyone(PoolId pool) {
    return pool == kGeneral ? general_ : FindAnyone(pool);
  }
  // The pool has no block any more.
  void EndPool(PoolId pool);
  // Those of the stream that no block is of are no more.
  void Forget(void* stream);

  // Streams other than `except` with free blocks of kGeneral that no mark is
  // behind of.
  [[nodiscard]] std::vector<void*> StreamsToMark(
      std::optional<void*> except) const;
  // Of the free blocks of kGeneral.
  [[nodiscard]] uint64_t LargestFreeBytes() const;

  [[nodiscard]] const OfStreams& of_streams() const { return of_streams_; }
  [[nodiscard]] const OfAnyone& of_anyone() const { return of_anyone_; }

 private:
  Share* Find(PoolId pool, void* stream);
  Share* FindAnyone(PoolId pool);

  OfStreams of_streams_;
  OfAnyone of_anyone_;
  Share* last_ = nullptr;  // the one of of_streams_ looked for last
  Share* general_;         // anyone's of kGeneral
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_SHARES_H_
