// The host pool: its mapping, with the largest pages that there are.
#include "device/hostpool/pool_mapping.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "device/hostpool/machine_memory.h"

// Since Linux 5.14 and 6.3; older C libraries do not name them.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

namespace gmb::device {
namespace {

absl::Status PoolError(int error, absl::string_view what) {
  if (error == ENOMEM || error == ENOSPC) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "host pool: ", what, ": the machine has no memory for it"));
  }
  return absl::InternalError(
      absl::StrCat("host pool: ", absl::ErrnoToStatus(error, what).message()));
}

absl::Status CheckSize(uint64_t bytes) {
  constexpr uint64_t kLargest = uint64_t{1} << 62;  // files count in off_t
  if (bytes != 0 && bytes <= kLargest &&
      bytes % kHostPoolGranularityBytes == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "size of a host pool must be a positive multiple of 2 MiB: bytes=",
      bytes));
}

// Without seals whoever keeps it could shrink it, and touching it would raise
// SIGBUS.
absl::Status CheckKept(const base::UniqueFd& memfd, uint64_t bytes) {
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(memfd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kNeeded) != kNeeded) {
    return absl::InvalidArgumentError(
        "what was kept as the host pool is no memfd sealed against shrinking "
        "and growing");
  }
  struct stat info {};
  if (fstat(memfd.get(), &info) != 0) return PoolError(errno, "fstat");
  if (info.st_size >= 0 && static_cast<uint64_t>(info.st_size) == bytes)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the host pool that was kept has ", info.st_size,
                   " bytes, the one asked for has ", bytes));
}

bool HasReservedPages(const base::UniqueFd& memfd) {
  struct statfs info {};
  return fstatfs(memfd.get(), &info) == 0 && info.f_type == HUGETLBFS_MAGIC;
}

// One sixteenth is left for everything else: a pool that uses up the last page
// brings the kernel's out-of-memory killer.
absl::Status CheckFits(uint64_t bytes) {
  GMB_ASSIGN_OR_RETURN(const AvailableMemory available, ReadAvailableMemory());
  const uint64_t usable = available.bytes - available.bytes / 16;
  if (bytes <= usable) return absl::OkStatus();
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  return absl::FailedPreconditionError(absl::StrCat(
      "host pool is larger than the memory available here: asked for ",
      bytes / kMiB, " MiB, at most ", usable / kMiB, " MiB are possible (",
      available.source,
      "): make the host pool smaller, or give the broker more memory"));
}

absl::StatusOr<base::UniqueFd> CreatePoolMemfd(uint64_t bytes,
                                               unsigned more_flags) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | more_flags;
  int fd = memfd_create("gmb-host-pool", flags | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = memfd_create("gmb-host-pool", flags);
  base::UniqueFd memfd(fd);
  if (!memfd.valid()) return PoolError(errno, "memfd_create");
  if (ftruncate(memfd.get(), static_cast<off_t>(bytes)) != 0) {
    return PoolError(errno, "ftruncate");
  }
  if (fcntl(memfd.get(), F_ADD_SEALS,
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return PoolError(errno, "seal");
  }
  return memfd;
}

absl::StatusOr<char*> Map(const base::UniqueFd& memfd, uint64_t bytes) {
  void* const start =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (start == MAP_FAILED) return PoolError(errno, "mmap");
  if (madvise(start, bytes, MADV_DONTDUMP) != 0 ||
      madvise(start, bytes, MADV_DONTFORK) != 0) {
    const int error = errno;
    munmap(start, bytes);
    return PoolError(error, "madvise");
  }
  return static_cast<char*>(start);
}

// Whether the kernel gives transparent huge pages to a memfd that asks.
bool TransparentHugePagesForMemfds() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string line;
  std::getline(file, line);
  for (const char* value : {"[always]", "[within_size]", "[advise]"}) {
    if (absl::StrContains(line, value)) return true;
  }
  return false;
}

}  // namespace

const char* PageKindName(PageKind kind) {
  switch (kind) {
    case PageKind::kHugetlb:
      return "hugetlb";
    case PageKind::kTransparent:
      return "transparent huge pages";
    case PageKind::kSmall:
      return "small pages";
  }
  return "unknown";
}

PoolMapping PoolMapping::OfOrdinaryPages(base::UniqueFd memfd, char* start,
                                         uint64_t bytes) {
  if (TransparentHugePagesForMemfds() &&
      madvise(start, bytes, MADV_HUGEPAGE) == 0) {
    return PoolMapping(std::move(memfd), start, bytes, PageKind::kTransparent,
                       "");
  }
  return PoolMapping(
      std::move(memfd), start, bytes, PageKind::kSmall,
      "for huge pages set vm.nr_hugepages before the start, or write advise to "
      "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
}

absl::StatusOr<PoolMapping> PoolMapping::Create(uint64_t bytes,
                                                PageSource source) {
  GMB_RETURN_IF_ERROR(CheckSize(bytes));
  // Reserved pages are no part of the available memory, and mmap fails when
  // there are too few, so they need no other check.
  if (source == PageSource::kAny) {
    if (auto memfd = CreatePoolMemfd(bytes, MFD_HUGETLB); memfd.ok()) {
      if (absl::StatusOr<char*> start = Map(*memfd, bytes); start.ok()) {
        return PoolMapping(*std::move(memfd), *start, bytes, PageKind::kHugetlb,
                           "");
      }
    }
  }
  GMB_RETURN_IF_ERROR(CheckFits(bytes));
  GMB_ASSIGN_OR_RETURN(base::UniqueFd memfd, CreatePoolMemfd(bytes, 0));
  GMB_ASSIGN_OR_RETURN(char* const start, Map(memfd, bytes));
  return OfOrdinaryPages(std::move(memfd), start, bytes);
}

// Whether it fits the machine was asked when it was made: most of its pages are
// in use already.
absl::StatusOr<PoolMapping> PoolMapping::Adopt(base::UniqueFd memfd,
                                               uint64_t bytes) {
  GMB_RETURN_IF_ERROR(CheckSize(bytes));
  GMB_RETURN_IF_ERROR(CheckKept(memfd, bytes));
  fcntl(memfd.get(), F_SETFD, FD_CLOEXEC);
  GMB_ASSIGN_OR_RETURN(char* const start, Map(memfd, bytes));
  if (HasReservedPages(memfd)) {
    return PoolMapping(std::move(memfd), start, bytes, PageKind::kHugetlb, "");
  }
  return OfOrdinaryPages(std::move(memfd), start, bytes);
}

PoolMapping::PoolMapping(PoolMapping&& other) noexcept
    : memfd_(std::move(other.memfd_)),
      start_(std::exchange(other.start_, nullptr)),
      bytes_(other.bytes_),
      kind_(other.kind_),
      note_(std::move(other.note_)) {}

PoolMapping::~PoolMapping() {
  if (start_ != nullptr) munmap(start_, bytes_);
}

// Nobody reads or writes at the file's offset, which this moves.
PoolMapping::InUse PoolMapping::InUseOf(const HostExtent& piece) const {
  const auto begin = static_cast<off_t>(piece.offset);
  const off_t end = begin + static_cast<off_t>(piece.bytes);
  const off_t data = lseek(memfd_.get(), begin, SEEK_DATA);
  if (data < 0 || data >= end) return InUse::kNone;
  return data == begin && lseek(memfd_.get(), begin, SEEK_HOLE) >= end
             ? InUse::kAll
             : InUse::kSome;
}

absl::Status PoolMapping::Populate(const HostExtent& piece) const {
  char* const at = start_ + piece.offset;
  int error = 0;
  do {
    error = madvise(at, piece.bytes, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
  } while (error == EAGAIN || error == EINTR);
  if (error == 0) return absl::OkStatus();
  if (error != EINVAL) {  // EFAULT stands for what would have been a SIGBUS
    return PoolError(error == EFAULT ? ENOMEM : error, "bring pages into use");
  }
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (uint64_t i = 0; i < piece.bytes; i += page) {  // an older kernel
    volatile char* const byte = at + i;
    *byte = *byte;
  }
  return absl::OkStatus();
}

void PoolMapping::GiveBack(const HostExtent& piece) const {
  (void)fallocate(memfd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(piece.offset),
                  static_cast<off_t>(piece.bytes));
}

}  // namespace gmb::device
