// Word for the next broker, when a memory error ends this one: the lease that
// was being copied.
#include "broker/keeping/copy_mark.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "absl/status/status.h"

namespace gmb::broker {
namespace {

// The first number says what the second one, a lease's id, is.
constexpr uint64_t kForm = 0x31'79'70'6f'63'62'6d'67;  // "gmbcopy1"
constexpr size_t kBytes = 2 * sizeof(uint64_t);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace

CopyMark::CopyMark(base::UniqueFd fd, void* memory)
    : fd_(std::move(fd)),
      lease_(new (static_cast<char*>(memory) + sizeof(uint64_t))
                 std::atomic<uint64_t>(0)) {}

CopyMark::~CopyMark() {
  ::munmap(reinterpret_cast<char*>(lease_) - sizeof(uint64_t), kBytes);
}

absl::StatusOr<std::unique_ptr<CopyMark>> CopyMark::Create() {
  base::UniqueFd fd(::memfd_create("gmb-copy", MFD_CLOEXEC));
  if (!fd.valid() ||
      ::pwrite(fd.get(), &kForm, sizeof(kForm), 0) != sizeof(kForm) ||
      ::ftruncate(fd.get(), kBytes) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make memory for a mark");
  }
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED)
    return absl::ErrnoToStatus(errno, "cannot map the memory of a mark");
  return std::unique_ptr<CopyMark>(new CopyMark(std::move(fd), memory));
}

// Read, not mapped: it may be shorter.
uint64_t CopyMark::ReadFrom(const SharedFd& last) {
  std::array<uint64_t, 2> found{};
  if (last == nullptr ||
      ::pread(last->get(), found.data(), kBytes, 0) !=
          static_cast<ssize_t>(kBytes) ||
      found[0] != kForm)
    return 0;
  return found[1];
}

}  // namespace gmb::broker
