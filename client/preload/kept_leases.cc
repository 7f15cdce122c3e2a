// `gmb run`: what was freed a moment ago serves the same program again.
#include "client/preload/kept_leases.h"

#include <algorithm>

namespace gmb::preload {

void KeptLeases::Add(CUdevice device, const LeaseRange& lease, TimePoint now) {
  kept_.push_back({.device = device, .lease = lease, .freed_at = now});
}

std::optional<LeaseRange> KeptLeases::Take(CUdevice device, uint64_t bytes) {
  const auto fit = std::find_if(
      kept_.rbegin(), kept_.rend(), [device, bytes](const Kept& one) {
        return one.device == device && one.lease.bytes == bytes &&
               one.lease.start != 0;
      });
  if (fit == kept_.rend()) return std::nullopt;
  const LeaseRange lease = fit->lease;
  kept_.erase(std::prev(fit.base()));
  return lease;
}

std::optional<LeaseRange> KeptLeases::TakeUnmapped(CUdevice device,
                                                   uint64_t bytes) {
  const auto fit = std::find_if(
      kept_.begin(), kept_.end(), [device, bytes](const Kept& one) {
        return one.device == device && one.lease.bytes == bytes &&
               one.lease.start == 0;
      });
  if (fit == kept_.end()) return std::nullopt;
  const LeaseRange lease = fit->lease;
  kept_.erase(fit);
  return lease;
}

size_t KeptLeases::CountUnmapped(CUdevice device, uint64_t bytes) const {
  return std::count_if(kept_.begin(), kept_.end(), [&](const Kept& one) {
    return one.device == device && one.lease.bytes == bytes &&
           one.lease.start == 0;
  });
}

template <typename Which>
std::vector<LeaseRange> KeptLeases::TakeEach(Which which) {
  std::vector<LeaseRange> taken;
  for (auto it = kept_.begin(); it != kept_.end();) {
    if (which(*it)) {
      taken.push_back(it->lease);
      it = kept_.erase(it);
    } else {
      ++it;
    }
  }
  return taken;
}

std::vector<LeaseRange> KeptLeases::TakeAsked(CUdevice device) {
  return TakeEach([device](const Kept& one) {
    return one.device == device && one.lease.asked != 0;
  });
}

std::vector<LeaseRange> KeptLeases::TakeOldAsked(TimePoint now) {
  return TakeEach([now](const Kept& one) {
    return one.lease.asked != 0 && now - one.freed_at >= kKeptFor;
  });
}

std::vector<LeaseRange> KeptLeases::TakeOld(TimePoint now) {
  std::vector<LeaseRange> old;
  while (!kept_.empty() && now - kept_.front().freed_at >= kKeptFor) {
    old.push_back(kept_.front().lease);
    kept_.pop_front();
  }
  return old;
}

std::vector<LeaseRange> KeptLeases::TakeFor(CUdevice device, uint64_t bytes) {
  std::vector<LeaseRange> taken;
  uint64_t held = 0;
  for (auto it = kept_.begin(); it != kept_.end() && held < bytes;) {
    if (it->device != device) {
      ++it;
      continue;
    }
    held += it->lease.bytes;
    taken.push_back(it->lease);
    it = kept_.erase(it);
  }
  return taken;
}

std::vector<LeaseRange> KeptLeases::TakeAll() {
  std::vector<LeaseRange> all;
  for (const Kept& one : kept_) all.push_back(one.lease);
  kept_.clear();
  return all;
}

uint64_t KeptLeases::HeldBytes(CUdevice device) const {
  uint64_t bytes = 0;
  for (const Kept& one : kept_) {
    if (one.device == device) bytes += one.lease.bytes;
  }
  return bytes;
}

}  // namespace gmb::preload
