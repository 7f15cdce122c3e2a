// Which sizes of slabs are worth keeping ready.
#include "broker/machine/size_demand.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace gmb::broker {

void SizeDemand::Note(uint64_t bytes) {
  if (bytes == whole_bytes_) {
    ++now_.whole;
  } else if (now_.by_size.contains(bytes) || MakeRoom()) {
    ++now_.by_size[bytes];
  } else {
    return;
  }
  ++now_.slabs;
  now_.bytes += bytes;
}

bool SizeDemand::MakeRoom() {
  if (now_.by_size.size() < kMostSizes) return true;
  const auto once =
      std::find_if(now_.by_size.begin(), now_.by_size.end(),
                   [](const auto& of_size) { return of_size.second == 1; });
  if (once == now_.by_size.end()) return false;
  --now_.slabs;
  now_.bytes -= once->first;
  now_.by_size.erase(once);
  return true;
}

void SizeDemand::Pass(quota::Instant now) {
  if (now < ends_) return;
  last_ = now < ends_ + kPeriod ? std::exchange(now_, {}) : Period();
  now_ = {};
  ends_ = now + kPeriod;
}

uint64_t SizeDemand::In(const Period& period, uint64_t bytes) const {
  if (bytes == whole_bytes_) return period.whole;
  const auto of_size = period.by_size.find(bytes);
  return of_size == period.by_size.end() ? 0 : of_size->second;
}

uint64_t SizeDemand::SlabsOf(uint64_t bytes) const {
  return In(now_, bytes) + In(last_, bytes);
}

std::vector<uint64_t> SizeDemand::Sizes() const {
  std::vector<uint64_t> sizes;
  sizes.reserve(now_.by_size.size() + last_.by_size.size());
  for (const auto& [bytes, slabs] : now_.by_size) sizes.push_back(bytes);
  for (const auto& [bytes, slabs] : last_.by_size) {
    if (!now_.by_size.contains(bytes)) sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace gmb::broker
