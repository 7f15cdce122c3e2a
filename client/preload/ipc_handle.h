#ifndef GMB_CLIENT_PRELOAD_IPC_HANDLE_H_
#define GMB_CLIENT_PRELOAD_IPC_HANDLE_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "client/lease/range_hooks.h"
#include "client/preload/driver.h"

namespace gmb::preload {

// A lease that processes share: its number and its key, since a broker that
// starts anew counts from 1.
using LeaseName = std::pair<uint64_t, decltype(internal::ExportedLease::key)>;
[[nodiscard]] inline LeaseName NameOf(const internal::ExportedLease& lease) {
  return {lease.lease_id, lease.key};
}

// An allocation that is served from leases, as the 64 bytes of a handle, or of
// a file in memory, tell of it to another `gmb run` process of the tenant. The
// program carries them there.
struct SharedBlock {
  internal::ExportedLease lease;
  CUuuid device;    // its GPU
  uint64_t offset;  // of the allocation, in its lease
  uint64_t bytes;   // as asked for
};

[[nodiscard]] CUipcMemHandle HandleOf(const SharedBlock& block);
// Nothing where the handle is not one of ours. Its contents may be forged: the
// broker judges it.
[[nodiscard]] std::optional<SharedBlock> BlockOf(const CUipcMemHandle& handle);

// The same as a file descriptor, whose bytes nobody can change; -1 where none can
// be had.
[[nodiscard]] int DescriptorOf(const SharedBlock& block);
// Nothing where the descriptor is not one of ours.
[[nodiscard]] std::optional<SharedBlock> BlockOf(int descriptor);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_IPC_HANDLE_H_
