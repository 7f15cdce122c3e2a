// `gmb run`: the free parts of leases that small blocks share.
#include "client/preload/free_ranges.h"

#include <iterator>

namespace gmb::preload {

void FreeRanges::Insert(uint64_t start, uint64_t bytes) {
  by_start_.emplace(start, bytes);
  by_size_.emplace(bytes, start);
}

void FreeRanges::Erase(ByStart::iterator range) {
  by_size_.erase({range->second, range->first});
  by_start_.erase(range);
}

std::optional<uint64_t> FreeRanges::Take(uint64_t bytes) {
  const auto fit = by_size_.lower_bound({bytes, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [size, start] = *fit;
  Erase(by_start_.find(start));
  if (size > bytes) Insert(start + bytes, size - bytes);
  return start;
}

void FreeRanges::Give(uint64_t start, uint64_t bytes, uint64_t within_start,
                      uint64_t within_end) {
  const auto next = by_start_.lower_bound(start);
  if (next != by_start_.begin()) {
    const auto before = std::prev(next);
    if (before->first >= within_start &&
        before->first + before->second == start) {
      start = before->first;
      bytes += before->second;
      Erase(before);
    }
  }
  const auto behind = by_start_.find(start + bytes);
  if (behind != by_start_.end() && behind->first < within_end) {
    bytes += behind->second;
    Erase(behind);
  }
  Insert(start, bytes);
}

void FreeRanges::Remove(uint64_t start, uint64_t bytes) {
  const auto range = by_start_.find(start);
  if (range != by_start_.end() && range->second == bytes) Erase(range);
}

}  // namespace gmb::preload
