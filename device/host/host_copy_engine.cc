// Eviction and restore on the host device: the processor copies.
#include "device/host/host_copy_engine.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <variant>

#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "device/host/sealed_memory.h"

namespace gmb::device {

absl::StatusOr<void*> HostCopyEngine::Map(const ShareableHandle& slab,
                                          uint64_t bytes) {
  const auto* fd = std::get_if<base::UniqueFd>(&slab);
  if (fd == nullptr || !fd->valid()) {
    return absl::InvalidArgumentError(
        "a slab of the host device comes as a file descriptor; got none");
  }
  GMB_RETURN_IF_ERROR(CheckSealedMemory(*fd, bytes));
  void* const start =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
  if (start == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, "map a slab to copy it");
  }
  madvise(start, bytes, MADV_DONTDUMP);
  madvise(start, bytes, MADV_DONTFORK);
  return start;
}

absl::Status HostCopyEngine::Unmap(void* slab, uint64_t bytes) {
  if (munmap(slab, bytes) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "unmap a slab after its copy");
}

absl::Status HostCopyEngine::Begin(CopyDirection direction, void* slab,
                                   void* host, uint64_t bytes) {
  const bool out = direction == CopyDirection::kOut;
  std::memcpy(out ? host : slab, out ? slab : host, bytes);
  return absl::OkStatus();
}

}  // namespace gmb::device
