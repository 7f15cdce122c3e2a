#ifndef GMB_DEVICE_HOSTPOOL_PAGE_LOCKER_H_
#define GMB_DEVICE_HOSTPOOL_PAGE_LOCKER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gmb::device {

// Page-locks host memory for devices that copy at full speed from and to such
// memory only. Thread-safe.
class PageLocker {
 public:
  virtual ~PageLocker() = default;

  // Takes tens of milliseconds a GiB where the pages are in use already.
  [[nodiscard]] virtual absl::Status Lock(void* start, uint64_t bytes) = 0;
  // Memory that Lock was given; no copy may be under way there.
  virtual void Unlock(void* start) = 0;
};

// For every GPU of this process, through the primary context of the one named
// (as for OpenVmmAllocator). The context, which costs some 250 ms and half a
// GiB of that GPU, is made by the first Lock, not here.
[[nodiscard]] absl::StatusOr<std::unique_ptr<PageLocker>> OpenCudaPageLocker(
    absl::string_view name);

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOSTPOOL_PAGE_LOCKER_H_
