#ifndef GMB_DEVICE_MAPPER_H_
#define GMB_DEVICE_MAPPER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/handle.h"

namespace gmb::device {

// A client's address range for one lease. Owns the reservation: destroying it
// unmaps what is mapped (after synchronising the device) and frees the range.
// Not thread-safe; the lease serialises.
class MappedRange {
 public:
  virtual ~MappedRange() = default;

  // The start of the range; the same for the range's whole life. (ipc: null
  // until Map, since the driver chooses the address; only one slab a range.)
  [[nodiscard]] virtual void* data() const = 0;
  [[nodiscard]] virtual uint64_t size_bytes() const = 0;

  // Imports `handles`, in order, and maps them one behind the other from
  // offset 0; `slab_bytes[i]` belongs to `handles[i]`, and their sum must be
  // size_bytes(). Consumes (closes) the handles in every case. All or nothing.
  [[nodiscard]] virtual absl::Status Map(
      std::vector<ShareableHandle> handles,
      absl::Span<const uint64_t> slab_bytes) = 0;

  // Synchronises the device, unmaps everything and releases the imported
  // handles; keeps the reservation, so that Map may follow at the same
  // address (not ipc). No-op when nothing is mapped.
  [[nodiscard]] virtual absl::Status Unmap() = 0;

  // The same of memory that no work is left on, as the caller knows: the device
  // is not waited for.
  [[nodiscard]] virtual absl::Status UnmapIdle() { return Unmap(); }
};

// The accesses of this process to a range.
enum class Protection {
  kReadWrite,
  // A write faults: on the host as any bad access does, on a GPU as an error of
  // the context, which ends what the process does there. ipc has no such thing:
  // writes go through.
  kRead,
};

// The client's side of one device: imports slabs and maps them. Thread-safe.
// Errors as in allocator.h; NOT_FOUND when this process cannot see the device.
class Mapper {
 public:
  virtual ~Mapper() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  // Reserves `bytes` (a multiple of the granularity) of addresses.
  // `access` names further devices (UUIDs) that may use the range, beside the
  // mapper's own. `protection` holds for all that is ever mapped there.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<MappedRange>> Reserve(
      uint64_t bytes, absl::Span<const std::string> access,
      Protection protection) = 0;

  // Blocks until all work that this process submitted to the device before the
  // call has ended, and to those that `access` names, as in Reserve. Destroys
  // captures that are under way there.
  [[nodiscard]] virtual absl::Status Synchronize(
      absl::Span<const std::string> access) = 0;

  // Byte copies between this process's memory and mapped device memory; for
  // tools and tests, not for speed. Synchronous.
  [[nodiscard]] virtual absl::Status CopyToHost(void* to,
                                                const void* from_device,
                                                uint64_t bytes) = 0;
  [[nodiscard]] virtual absl::Status CopyToDevice(void* to_device,
                                                  const void* from,
                                                  uint64_t bytes) = 0;
  [[nodiscard]] virtual absl::Status Fill(void* device, uint8_t value,
                                          uint64_t bytes) = 0;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_MAPPER_H_
