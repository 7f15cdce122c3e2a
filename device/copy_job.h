#ifndef GMB_DEVICE_COPY_JOB_H_
#define GMB_DEVICE_COPY_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "device/copy_engine.h"
#include "device/handle.h"
#include "device/hostpool/host_extent.h"

namespace gmb::device {

// The copy of one slab's contents to, or from, its room in the host pool.
struct CopyJob {
  CopyDirection direction = CopyDirection::kOut;
  // The group that Cancel names: one eviction or restore, of any number of
  // slabs.
  uint64_t group = 0;
  // Of the contents, for CopyInHand; 0: none.
  uint64_t owner = 0;
  // Given up once it is mapped, or the job ends. Not null.
  std::shared_ptr<const ShareableHandle> slab;
  uint64_t slab_bytes = 0;
  // Where the contents lie in the host pool, in order; together slab_bytes.
  std::vector<HostExtent> room;
  // Called exactly once, on the copier's thread with no lock held, when the
  // copier neither maps nor holds the slab any more: it may be destroyed, or
  // given to its client. It must not block for long, since the next copies
  // wait, and not destroy the copier.
  //   OK                  all bytes are where they should be
  //   CANCELLED           Cancel, or the copier is being destroyed
  //   INVALID_ARGUMENT    room and slab do not agree
  //   RESOURCE_EXHAUSTED  no memory on the host or, for a context, the device
  //   UNAVAILABLE         the device is lost: every later copy fails alike
  //   INTERNAL            any other driver error
  // After any error the destination holds anything; the source is as it was.
  std::function<void(absl::Status)> done;
};

// How copies are cut and kept in flight.
struct CopyPacing {
  // The largest single copy. From 32 MiB on a GPU copies at its full rate
  // (measured: 2 MiB 52, 8 MiB 54.6, 32 MiB 55.3 GB/s one after the other); a
  // cancelled copy ends after the pieces in flight.
  uint64_t piece_bytes = uint64_t{32} << 20;
  // Begun and not finished at most, and at least one piece. 256 MiB take a GPU
  // 4.6 ms: time enough to map, unmap and report slabs (0.1 ms each, up to 3 ms
  // while others wait for cleared memory in the driver) without the copies
  // running dry, and short enough to cancel.
  uint64_t window_bytes = uint64_t{256} << 20;
  // vmm: streams in turn, so that small pieces leave no gap between them.
  unsigned streams = 2;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_COPY_JOB_H_
