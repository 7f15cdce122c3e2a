// `gmb run`: a program that makes one handle after the other wants more.
#include "client/preload/create_run.h"

#include <algorithm>

namespace gmb::preload {

size_t CreateRun::Next(CUdevice device, uint64_t bytes, TimePoint now) {
  const bool goes_on =
      bytes == bytes_ && device == device_ && now - last_ < kPause;
  device_ = device;
  bytes_ = bytes;
  last_ = now;
  const auto fit = std::min<size_t>(kMostHandles, kMostBytes / bytes);
  ahead_ = goes_on ? std::min(std::max<size_t>(1, 2 * ahead_), fit) : 0;
  if (refused_.has_value() && now - *refused_ < kAfterRefusal) ahead_ = 0;
  return ahead_;
}

void CreateRun::Refused(TimePoint now) {
  refused_ = now;
  ahead_ = 0;
}

}  // namespace gmb::preload
