// Eviction: finds a place in the host pool for the contents of a lease.
#include "broker/hostpool/extent_set.h"

#include <algorithm>

namespace gmb::broker {

ExtentSet::ExtentSet(uint64_t bytes) {
  if (bytes != 0) Insert(0, bytes);
}

void ExtentSet::Insert(uint64_t offset, uint64_t bytes) {
  by_offset_.emplace(offset, bytes);
  by_bytes_.emplace(bytes, offset);
  free_bytes_ += bytes;
}

void ExtentSet::Erase(ByOffset::iterator extent) {
  by_bytes_.erase({extent->second, extent->first});
  free_bytes_ -= extent->second;
  by_offset_.erase(extent);
}

device::HostExtent ExtentSet::TakeFrom(uint64_t offset, uint64_t bytes) {
  const auto extent = by_offset_.find(offset);
  const uint64_t had = extent->second;
  const uint64_t taken = std::min(had, bytes);
  Erase(extent);
  if (taken < had) Insert(offset + taken, had - taken);
  return {offset, taken};
}

std::vector<device::HostExtent> ExtentSet::Take(uint64_t bytes) {
  std::vector<device::HostExtent> taken;
  while (bytes > 0 && free_bytes_ > 0) {
    auto best = by_bytes_.lower_bound({bytes, 0});
    if (best == by_bytes_.end()) --best;
    taken.push_back(TakeFrom(best->second, bytes));
    bytes -= taken.back().bytes;
  }
  return taken;
}

bool ExtentSet::TakeThese(const std::vector<device::HostExtent>& extents) {
  std::vector<device::HostExtent> taken;
  for (const auto& [offset, bytes] : extents) {
    auto extent = by_offset_.upper_bound(offset);
    const bool free = bytes > 0 && extent != by_offset_.begin() &&
                      (--extent)->first + extent->second >= offset &&
                      extent->first + extent->second - offset >= bytes;
    if (!free) {
      Give(taken);
      return false;
    }
    const uint64_t from = extent->first;
    const uint64_t end = from + extent->second;
    Erase(extent);
    if (from < offset) Insert(from, offset - from);
    if (offset + bytes < end) Insert(offset + bytes, end - offset - bytes);
    taken.push_back({offset, bytes});
  }
  return true;
}

void ExtentSet::Give(const std::vector<device::HostExtent>& extents) {
  for (auto [offset, bytes] : extents) {
    auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        Erase(before);
      }
    }
    if (after != by_offset_.end() && offset + bytes == after->first) {
      bytes += after->second;
      Erase(after);
    }
    Insert(offset, bytes);
  }
}

}  // namespace gmb::broker
