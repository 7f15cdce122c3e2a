#ifndef GMB_DEVICE_HOSTPOOL_COPIER_H_
#define GMB_DEVICE_HOSTPOOL_COPIER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "device/copy_engine.h"
#include "device/copy_job.h"
#include "device/handle.h"
#include "device/hostpool/copy_lane.h"
#include "device/hostpool/host_pool.h"

namespace gmb::device {

// Copies slabs of one device to the host pool and back, through mappings of
// its own, so that no client takes part.
//
// The unit is one slab. An eviction pushes all slabs of a lease at once; a
// restore pushes them when they are created. Each is answered for itself, in
// its callback. All or nothing over several slabs is the caller's: Cancel the
// group when one fails.
//
// Two threads, one a direction, each first in, first out and independent of the
// other (a GPU copies both ways at once). So the most urgent copy must be
// pushed first: copies made ahead of need go in small steps.
//
// Push takes a lock for moments and makes no system call, so that it may be
// called under the broker's lock; Wake afterwards, without it.
class Copier {
 public:
  Copier(HostPool* pool, std::unique_ptr<CopyEngine> out,
         std::unique_ptr<CopyEngine> in, const CopyPacing& pacing)
      : out_(pool, std::move(out), pacing), in_(pool, std::move(in), pacing) {}

  void Push(CopyJob job) {
    const bool out = job.direction == CopyDirection::kOut;
    (out ? out_ : in_).Push(std::move(job));
  }
  void Wake() {
    out_.Wake();
    in_.Wake();
  }
  // Ends all jobs, those not done with CANCELLED, and the threads. The
  // destructor answers jobs that are pushed after that.
  void Stop() {
    out_.Stop();
    in_.Stop();
  }
  // Jobs of the group pushed so far end as CANCELLED at the next piece, unless
  // all their pieces are begun: those may still end well. Does not wait.
  void Cancel(uint64_t group) {
    out_.Cancel(group);
    in_.Cancel(group);
  }

 private:
  CopyLane out_;
  CopyLane in_;
};

// The copier of a device. FAILED_PRECONDITION for ipc: a client cannot map its
// memory there at the same place again, so it is not evicted. For GPUs this
// makes no context; the first copy does.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Copier>> OpenCopier(
    const DeviceInfo& info, HostPool* pool, const CopyPacing& pacing = {});

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOSTPOOL_COPIER_H_
