#ifndef GMB_CLIENT_PRELOAD_FREE_RANGES_H_
#define GMB_CLIENT_PRELOAD_FREE_RANGES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace gmb::preload {

// Free address ranges, found by size and joined with their neighbours. Not
// thread-safe.
class FreeRanges {
 public:
  // The start of `bytes` out of the smallest range that has them.
  [[nodiscard]] std::optional<uint64_t> Take(uint64_t bytes);
  // Joined with what lies directly before and behind it, inside
  // [within_start, within_end).
  void Give(uint64_t start, uint64_t bytes, uint64_t within_start,
            uint64_t within_end);
  // Takes out a range that is free as a whole.
  void Remove(uint64_t start, uint64_t bytes);

 private:
  using ByStart = std::map<uint64_t, uint64_t>;  // start -> bytes

  void Insert(uint64_t start, uint64_t bytes);
  void Erase(ByStart::iterator range);

  ByStart by_start_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // bytes, start
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_FREE_RANGES_H_
