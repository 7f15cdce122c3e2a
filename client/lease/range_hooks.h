#ifndef GMB_CLIENT_LEASE_RANGE_HOOKS_H_
#define GMB_CLIENT_LEASE_RANGE_HOOKS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace gmb::internal {

// The functions that map a lease's slabs where its holder wants them: for the
// preload library of `gmb run`, whose programs choose the addresses themselves
// (cuMemMap). Plain pointers, because it has no Abseil; both libraries are of
// one build.
//
// Called on the thread that asks for the lease, the one that releases it, and
// the session's mover; never two at once for one lease. They return 0 or the
// driver's error.
struct RangeHooks {
  // The holder's name of the lease.
  uint64_t handle;
  // The slabs of the lease are here, in order; the fds stay the caller's. After
  // an error nothing of it is mapped anywhere.
  int (*map)(uint64_t handle, const int* fds, const uint64_t* slab_bytes,
             size_t count);
  // Waits for the device, unmaps all of it and lets go of the slabs. After an
  // error all is mapped as before. Also called when nothing is mapped.
  int (*unmap)(uint64_t handle);
};

// The name by which other processes attach to a lease that one has exported.
struct ExportedLease {
  uint64_t lease_id;
  std::array<char, 16> key;
};

}  // namespace gmb::internal

struct gmb_client;
struct gmb_lease;
struct gmb_error;
struct gmb_acquire_options;

// From libgmb.so; not of the public interface.

// As gmb_acquire, for a GPU with virtual memory management: the lease has no
// address of its own, and the hooks map it. options->device has to be set.
// `asked`: 0, or the number of one that was asked for ahead of need, of as many
// bytes; it is void afterwards.
extern "C" gmb_error* gmb_internal_acquire_unmapped(
    gmb_client* client, uint64_t bytes, const gmb_acquire_options* options,
    uint64_t asked, const gmb::internal::RangeHooks* hooks, gmb_lease** lease);

// Asks for `count` such leases without waiting, each of what is free now, and
// fills `asked` with their numbers. Returns how many there are.
extern "C" size_t gmb_internal_ask_ahead(gmb_client* client, uint64_t bytes,
                                         const gmb_acquire_options* options,
                                         uint64_t* asked, size_t count);
// It goes back; waits for the broker's answer to it.
extern "C" void gmb_internal_forget_ahead(gmb_client* client, uint64_t asked);

// As gmb_lease_release_soon, of a lease that no work is left on, as the caller
// knows: the device is not waited for either. The error is of the unmapping.
extern "C" gmb_error* gmb_internal_release_idle(gmb_lease* lease);

// Other processes of the tenant may map the session's own lease from now on; it
// stays on the device, where it has to be now. `slab_fd`: null, or where the
// handle of its only slab goes, which is the caller's then; FAILED_PRECONDITION
// when it has several.
extern "C" gmb_error* gmb_internal_export(
    gmb_client* client, gmb_lease* lease,
    gmb::internal::ExportedLease* exported, int* slab_fd);
// Such a lease of another process, mapped by the hooks.
extern "C" gmb_error* gmb_internal_attach_exported(
    gmb_client* client, const gmb::internal::ExportedLease* exported,
    const char* device, const gmb::internal::RangeHooks* hooks,
    gmb_lease** lease);

#endif  // GMB_CLIENT_LEASE_RANGE_HOOKS_H_
