// A slab serves its last tenant again, or nobody.
#include "broker/machine/returned_slabs.h"

#include <algorithm>
#include <iterator>

namespace gmb::broker {

void ReturnedSlabs::Keep(const Returned& returned) {
  bytes_ += returned.slab.bytes;
  const auto later = std::find_if(
      slabs_.rbegin(), slabs_.rend(),
      [&](const Returned& r) { return r.expires <= returned.expires; });
  slabs_.insert(later.base(), returned);
}

// Newest first: the likeliest to still be in somebody's caches.
std::optional<Slab> ReturnedSlabs::Take(quota::TenantId tenant,
                                        uint64_t bytes) {
  const auto it =
      std::find_if(slabs_.rbegin(), slabs_.rend(), [&](const Returned& r) {
        return r.tenant == tenant && r.slab.bytes == bytes;
      });
  if (it == slabs_.rend()) return std::nullopt;
  const Slab slab = it->slab;
  bytes_ -= bytes;
  slabs_.erase(std::next(it).base());
  return slab;
}

ReturnedSlabs::Returned ReturnedSlabs::Pop() {
  const Returned first = slabs_.front();
  slabs_.pop_front();
  bytes_ -= first.slab.bytes;
  return first;
}

}  // namespace gmb::broker
