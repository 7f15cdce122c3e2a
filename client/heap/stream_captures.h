#ifndef GMB_CLIENT_HEAP_STREAM_CAPTURES_H_
#define GMB_CLIENT_HEAP_STREAM_CAPTURES_H_

#include <algorithm>
#include <cstdint>
#include <map>

#include "client/heap/arena.h"

namespace gmb::internal {

// The captures that are under way, each from a stream's BeginCapture to its
// EndCapture. Not thread-safe.
class StreamCaptures {
 public:
  struct Capture {
    PoolId pool = kGeneral;  // none is under way
    uint32_t number = 0;
  };

  [[nodiscard]] bool Any() const { return !by_stream_.empty(); }
  // Whether one takes its memory from the pool.
  [[nodiscard]] bool In(PoolId pool) const {
    return std::any_of(
        by_stream_.begin(), by_stream_.end(),
        [pool](const auto& entry) { return entry.second.pool == pool; });
  }
  // Asked at every allocation, mostly when there is none.
  [[nodiscard]] Capture Of(void* stream) const {
    return by_stream_.empty() ? Capture() : Find(stream);
  }

  // False: the stream's has begun already.
  [[nodiscard]] bool Begin(PoolId pool, void* stream) {
    const Capture capture{.pool = pool, .number = last_ + 1};
    if (!by_stream_.emplace(stream, capture).second) return false;
    last_ = capture.number;
    return true;
  }
  // False: the stream's has not begun with this pool.
  [[nodiscard]] bool End(PoolId pool, void* stream) {
    const auto capture = by_stream_.find(stream);
    if (capture == by_stream_.end() || capture->second.pool != pool)
      return false;
    by_stream_.erase(capture);
    return true;
  }
  void EndAllIn(PoolId pool) {
    std::erase_if(by_stream_, [pool](const auto& entry) {
      return entry.second.pool == pool;
    });
  }

 private:
  [[nodiscard]] Capture Find(void* stream) const;

  std::map<void*, Capture> by_stream_;
  uint32_t last_ = 0;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_STREAM_CAPTURES_H_
