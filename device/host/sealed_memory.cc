// Grant: memory of a host slab; release: whether anybody still holds it.
#include "device/host/sealed_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

// Since Linux 6.3; older C libraries do not name it.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

namespace gmb::device {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Too few descriptors is not "the device is full": keep the two apart.
absl::Status SystemError(int error, absl::string_view call) {
  if (error == EMFILE || error == ENFILE) {
    return absl::InternalError(absl::StrCat(
        call, ": too many open files; raise this process's limit (ulimit -n)"));
  }
  if (error == ENOMEM || error == ENOSPC) {
    return absl::ResourceExhaustedError(
        absl::StrCat(call, ": the machine has no memory for it"));
  }
  const absl::Status status = absl::ErrnoToStatus(error, call);
  return absl::InternalError(status.message());
}

// The kernel answers F_SETLEASE for the owner alone, or with CAP_LEASE. A
// process with CAP_CHOWN can make another the owner of the memory it was given.
absl::Status LeaseError(const base::UniqueFd& anchor, int error) {
  struct stat info {};
  if (error != EACCES || fstat(anchor.get(), &info) != 0) {
    return SystemError(error, "F_SETLEASE on a memfd");
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "a process with CAP_CHOWN has made uid ", info.st_uid,
      " the owner of their files, and nobody but the owner, or a process with "
      "CAP_LEASE, is told who holds them; as root, where gmbd runs, `find "
      "/proc/",
      getpid(), "/fd -lname '*gmb-slab*' -exec chown ", geteuid(),
      " {} +` gives them back to gmbd; or restart gmbd, with CAP_LEASE so that "
      "it does not happen again"));
}

// Immutable and append-only files take no holes.
absl::Status PunchError(int error) {
  if (error != EPERM) return SystemError(error, "drop a memfd's pages");
  return absl::FailedPreconditionError(
      "a process with CAP_LINUX_IMMUTABLE has made their files immutable or "
      "append-only, so that their contents cannot be dropped; restart gmbd to "
      "have them back");
}

base::UniqueFd CreateSlabMemfd() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = memfd_create("gmb-slab", kFlags | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = memfd_create("gmb-slab", kFlags);
  return base::UniqueFd(fd);
}

}  // namespace

absl::StatusOr<base::UniqueFd> ReopenSealedMemory(
    const base::UniqueFd& anchor) {
  const std::string path = absl::StrCat("/proc/self/fd/", anchor.get());
  base::UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.valid()) return fd;
  if (errno == ENOENT) {
    return absl::FailedPreconditionError(
        "the host device needs /proc to reopen its memory: mount it (mount -t "
        "proc proc /proc)");
  }
  return SystemError(errno, "reopen a memfd");
}

namespace {

// A description of its own of `memory`, by which SomebodyHolds can ask.
absl::StatusOr<base::UniqueFd> OpenAnchor(const base::UniqueFd& memory) {
  absl::StatusOr<base::UniqueFd> anchor = ReopenSealedMemory(memory);
  if (!anchor.ok()) return anchor;
  // Somebody who opens the file during SomebodyHolds breaks our lease, and the
  // default notice of that, SIGIO, would end the process. SIGURG is ignored.
  if (fcntl(anchor->get(), F_SETSIG, SIGURG) != 0) {
    return SystemError(errno, "F_SETSIG on a memfd");
  }
  return anchor;
}

absl::StatusOr<uint64_t> SizeOf(const base::UniqueFd& memory) {
  struct stat info {};
  if (fstat(memory.get(), &info) != 0) return SystemError(errno, "fstat");
  return static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
}

}  // namespace

absl::StatusOr<base::UniqueFd> CreateSealedMemory(uint64_t bytes) {
  const base::UniqueFd memfd = CreateSlabMemfd();
  if (!memfd.valid()) return SystemError(errno, "memfd_create");
  if (ftruncate(memfd.get(), static_cast<off_t>(bytes)) != 0) {
    return SystemError(errno, "ftruncate of a memfd");
  }
  if (fcntl(memfd.get(), F_ADD_SEALS, kSeals) != 0) {
    return SystemError(errno, "seal a memfd");
  }
  return OpenAnchor(memfd);
}

absl::StatusOr<base::UniqueFd> AdoptSealedMemory(const base::UniqueFd& memory,
                                                 uint64_t bytes) {
  GMB_RETURN_IF_ERROR(CheckSealedMemory(memory, bytes));
  GMB_ASSIGN_OR_RETURN(const uint64_t size, SizeOf(memory));
  if (size != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("refused a slab that is larger than it is said to be: "
                     "bytes=",
                     size, " said=", bytes));
  }
  return OpenAnchor(memory);
}

absl::StatusOr<bool> SomebodyHolds(const base::UniqueFd& anchor,
                                   uint64_t bytes) {
  if (fcntl(anchor.get(), F_SETLEASE, F_WRLCK) != 0) {
    if (errno == EAGAIN) return true;
    return LeaseError(anchor, errno);
  }
  // Under the lease nobody can open it, so nothing is written after this.
  const int punched =
      fallocate(anchor.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                static_cast<off_t>(bytes));
  const int error = errno;
  fcntl(anchor.get(), F_SETLEASE, F_UNLCK);
  if (punched != 0) return PunchError(error);
  return false;
}

absl::Status CheckSealedMemory(const base::UniqueFd& memory, uint64_t bytes) {
  const int seals = fcntl(memory.get(), F_GET_SEALS);
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW;
  if (seals < 0 || (seals & kNeeded) != kNeeded) {
    return absl::InvalidArgumentError(
        "refused a slab that is no memfd sealed against shrinking and growing");
  }
  GMB_ASSIGN_OR_RETURN(const uint64_t size, SizeOf(memory));
  if (size >= bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "refused a slab that is smaller than announced: bytes=", size,
      " announced=", bytes));
}

}  // namespace gmb::device
