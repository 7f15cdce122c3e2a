#ifndef GMB_DEVICE_ALLOCATOR_H_
#define GMB_DEVICE_ALLOCATOR_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/handle.h"

namespace gmb::device {

// Names a slab inside one allocator. Never reused in its lifetime.
using SlabKey = uint64_t;

struct CreatedSlab {
  SlabKey key;
  // Exported once; the caller stores and duplicates it.
  ShareableHandle exported;
};

// A destroyed slab that still uses up the device.
struct HeldSlab {
  SlabKey key;
  uint64_t bytes;
  // Empty: some process maps or holds it. Else nobody can tell whether one
  // does, so that it has to be counted as held: why, and what an operator does.
  std::string stuck;
};

// The memory that one process uses of a device, contexts included, as the
// driver charges it. A hint only: shared slabs are charged to their owner, a
// client that keeps a slab and its fd is not charged for it, and processes
// outside this PID namespace are not listed.
struct ProcessUsage {
  pid_t pid;
  uint64_t used_bytes;
  std::string program = {};  // short, printable; empty: not to be read
};

// The broker's side of one device: physical slabs, created and destroyed.
//
// Called by one thread at a time (the device's worker); a call can take
// milliseconds. A failure is an answer, never the end of the process:
//   RESOURCE_EXHAUSTED  the device, or the machine, has no memory for it
//   INVALID_ARGUMENT    size is 0 or no multiple of the granularity
//   NOT_FOUND           unknown key
//   UNAVAILABLE         the device or its driver is lost, or is not to be had
//                       now: recreate the allocator
//   INTERNAL            any other driver error, with its name in the message
class Allocator {
 public:
  virtual ~Allocator() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  // Creates `bytes` of zeroed device memory and exports it.
  [[nodiscard]] virtual absl::StatusOr<CreatedSlab> Create(uint64_t bytes) = 0;

  // A slab of `bytes` that another process's allocator has created, which is
  // dead by now: from here on as one of ours. `handle`, its exported one, stays
  // the caller's. INVALID_ARGUMENT: it is no such slab, or of another size
  // (vmm cannot tell the size); RESOURCE_EXHAUSTED: beyond a host device's
  // capacity; FAILED_PRECONDITION: ipc, whose memory ends with its process.
  [[nodiscard]] virtual absl::StatusOr<SlabKey> Import(
      const ShareableHandle& handle, uint64_t bytes) = 0;

  // Lets go of the allocator's own reference. The caller must have closed
  // every exported fd it holds. The memory is back once no client maps or
  // holds it: FreeBytes() tells.
  [[nodiscard]] virtual absl::Status Destroy(SlabKey key) = 0;

  // Bytes that the device reports free now, seen by everybody (not only us).
  // host: configured capacity less live slabs and less destroyed slabs that
  // some process still maps or holds.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> FreeBytes() = 0;

  // The destroyed slabs that the last call counted as not back, where the
  // allocator can name them: host. Cheap, and no system calls.
  [[nodiscard]] virtual std::vector<HeldSlab> Held() const { return {}; }

  // The processes that use the device, as far as it can be told. host: nobody
  // but us can.
  [[nodiscard]] virtual absl::StatusOr<std::vector<ProcessUsage>>
  Processes() = 0;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_ALLOCATOR_H_
