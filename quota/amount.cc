// A quantity of a pool's memory: bytes, or a share.
#include "quota/amount.h"

#include <algorithm>
#include <cmath>

#include "quota/units.h"

namespace gmb::quota {

bool Amount::IsValid() const {
  if (!is_fraction_) return true;
  return std::isfinite(fraction_) && fraction_ >= 0 && fraction_ <= 1;
}

uint64_t Amount::Resolve(uint64_t pool_bytes,
                         uint64_t granularity_bytes) const {
  if (!IsValid()) return 0;
  uint64_t resolved = bytes_;
  if (is_fraction_) {
    // Exact: a pool has at most 2^46 bytes, a double holds 2^53.
    const uint64_t pool = std::min(pool_bytes, kMaxPoolBytes);
    resolved = static_cast<uint64_t>(fraction_ * static_cast<double>(pool));
  }
  resolved = std::min(resolved, kMaxPoolBytes);
  return resolved - resolved % granularity_bytes;
}

}  // namespace gmb::quota
