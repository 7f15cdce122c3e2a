#ifndef GMB_DEVICE_HOST_SEALED_MEMORY_H_
#define GMB_DEVICE_HOST_SEALED_MEMORY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace gmb::device {

// Slabs of host memory: memfds of fixed size, zero at birth and paged in when
// first touched. It is known exactly whether anybody still holds one, so that
// the host device can tell unreturned memory from free memory.
//
// How: the kernel grants a write lease (fcntl F_SETLEASE) on a file only when
// no other open file description for it exists. A mapping, a duplicate, and an
// fd waiting unread in a socket all keep a description alive. A memfd as
// memfd_create returns it is not counted by the kernel, so both the fd that we
// keep (the anchor) and the one that leaves are reopened through /proc.

// Creates `bytes` of zeroed memory, sealed against shrinking, growing and
// further seals, and returns its anchor. Two descriptors are open meanwhile.
// FAILED_PRECONDITION when /proc is not mounted; INTERNAL otherwise.
[[nodiscard]] absl::StatusOr<base::UniqueFd> CreateSealedMemory(uint64_t bytes);

// An anchor of memory that CreateSealedMemory made in another process, and that
// `memory` is one of the fds that left it. INVALID_ARGUMENT when it is no such
// memory, or has not exactly `bytes`.
[[nodiscard]] absl::StatusOr<base::UniqueFd> AdoptSealedMemory(
    const base::UniqueFd& memory, uint64_t bytes);

// A new open file description of the same memory.
[[nodiscard]] absl::StatusOr<base::UniqueFd> ReopenSealedMemory(
    const base::UniqueFd& anchor);

// True when somebody besides `anchor` still maps the memory or has it open.
// When nobody does, the contents are dropped before this returns false, so a
// descriptor that the kernel does not count (O_PATH) finds zeros later.
// FAILED_PRECONDITION, with what an operator does about it: a process with the
// rights for that has made the file one that the kernel does not tell us about.
// Never waits for a holder. Everything that takes the file's lock (fallocate,
// fchown) would, for as long as the holder likes: it keeps that lock while it
// writes from a page that does not come (userfaultfd, FUSE).
[[nodiscard]] absl::StatusOr<bool> SomebodyHolds(const base::UniqueFd& anchor,
                                                 uint64_t bytes);

// A peer's fd is safe to map: it has at least `bytes`, and its seals promise
// that this stays so. (Else touching the mapping could raise SIGBUS.)
[[nodiscard]] absl::Status CheckSealedMemory(const base::UniqueFd& memory,
                                             uint64_t bytes);

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOST_SEALED_MEMORY_H_
