// Greeting: the page that a gate's word lies in.
#include "ipc/gate_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "base/status_macros.h"

namespace gmb::ipc {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

absl::Status CheckMemory(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return absl::InvalidArgumentError(
        "gate page: not a memfd that is sealed against shrinking and growing");
  }
  struct stat stat {};
  if (::fstat(fd, &stat) != 0) return absl::ErrnoToStatus(errno, "gate page");
  if (stat.st_size != static_cast<off_t>(GatePage::kBytes)) {
    return absl::InvalidArgumentError("gate page: wrong size");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<base::UniqueFd> CreateGatePage() {
  base::UniqueFd fd(
      ::memfd_create("gmb-gate", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "gate page");
  // Backed now: a page that is made at first touch is made, or not, then.
  if (const int error =
          ::posix_fallocate(fd.get(), 0, static_cast<off_t>(GatePage::kBytes));
      error != 0) {
    return absl::ErrnoToStatus(error, "gate page");
  }
  const uint64_t word = kGateOff.bits();
  if (::pwrite(fd.get(), &word, sizeof(word), 0) != sizeof(word) ||
      ::fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    return absl::ErrnoToStatus(errno, "gate page");
  }
  return fd;
}

absl::StatusOr<GatePage> GatePage::Map(int fd) {
  GMB_RETURN_IF_ERROR(CheckMemory(fd));
  void* const at =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return absl::ErrnoToStatus(errno, "gate page");
  GatePage page(static_cast<GateCells*>(at));
  if (::madvise(at, kBytes, MADV_DONTFORK) != 0 ||
      ::madvise(at, kBytes, MADV_DONTDUMP) != 0) {
    return absl::ErrnoToStatus(errno, "gate page");
  }
  return page;
}

GatePage::~GatePage() {
  if (cells_ != nullptr) ::munmap(cells_, kBytes);
}

}  // namespace gmb::ipc
