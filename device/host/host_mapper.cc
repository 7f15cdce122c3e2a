// Map: slabs of the host device become one range of addresses.
#include "device/host/host_mapper.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "device/host/host_allocator.h"
#include "device/host/sealed_memory.h"
#include "device/sizes.h"

namespace gmb::device {
namespace {

constexpr int kReserveFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

absl::Status CheckHandle(const ShareableHandle& handle, uint64_t bytes) {
  const auto* fd = std::get_if<base::UniqueFd>(&handle);
  if (fd == nullptr || !fd->valid()) {
    return absl::InvalidArgumentError(
        "a slab of the host device comes as a file descriptor; got none");
  }
  return CheckSealedMemory(*fd, bytes);
}

class HostRange final : public MappedRange {
 public:
  HostRange(void* start, uint64_t bytes, Protection protection)
      : start_(static_cast<char*>(start)),
        bytes_(bytes),
        protection_(protection) {}
  HostRange(const HostRange&) = delete;
  HostRange& operator=(const HostRange&) = delete;
  ~HostRange() override { munmap(start_, bytes_); }

  [[nodiscard]] void* data() const override { return start_; }
  [[nodiscard]] uint64_t size_bytes() const override { return bytes_; }

  [[nodiscard]] absl::Status Map(
      std::vector<ShareableHandle> handles,
      absl::Span<const uint64_t> slab_bytes) override {
    if (mapped_) {
      return absl::FailedPreconditionError("range is mapped: unmap it first");
    }
    GMB_RETURN_IF_ERROR(
        CheckSlabs(handles.size(), slab_bytes, bytes_, kHostGranularityBytes));
    for (size_t i = 0; i < handles.size(); ++i) {
      GMB_RETURN_IF_ERROR(CheckHandle(handles[i], slab_bytes[i]));
    }
    mapped_ = true;
    absl::Status status = MapAll(handles, slab_bytes);
    if (!status.ok()) Unmap().IgnoreError();
    return status;
  }

  [[nodiscard]] absl::Status Unmap() override {
    if (!mapped_) return absl::OkStatus();
    // Replaces every mapping in one step; the addresses stay ours throughout.
    if (mmap(start_, bytes_, PROT_NONE, kReserveFlags | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
      return absl::ErrnoToStatus(errno, "unmap a range of the host device");
    }
    mapped_ = false;
    return absl::OkStatus();
  }

 private:
  absl::Status MapAll(const std::vector<ShareableHandle>& handles,
                      absl::Span<const uint64_t> slab_bytes) {
    const int allowed =
        protection_ == Protection::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
    char* at = start_;
    for (size_t i = 0; i < handles.size(); ++i) {
      const int fd = std::get<base::UniqueFd>(handles[i]).get();
      if (mmap(at, slab_bytes[i], allowed, MAP_SHARED | MAP_FIXED, fd, 0) ==
          MAP_FAILED) {
        return absl::ErrnoToStatus(errno, "map a slab of the host device");
      }
      at += slab_bytes[i];
    }
    if (madvise(start_, bytes_, MADV_DONTDUMP) != 0 ||
        madvise(start_, bytes_, MADV_DONTFORK) != 0) {
      return absl::ErrnoToStatus(errno, "madvise on a range");
    }
    return absl::OkStatus();
  }

  char* const start_;
  const uint64_t bytes_;
  const Protection protection_;
  bool mapped_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MappedRange>> HostMapper::Reserve(
    uint64_t bytes, absl::Span<const std::string> access,
    Protection protection) {
  GMB_RETURN_IF_ERROR(CheckSize(bytes, kHostGranularityBytes));
  for (const std::string& device : access) {
    if (absl::StartsWith(device, "GPU-")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a GPU cannot access a range of the host device: ", device));
    }
  }
  void* const start = mmap(nullptr, bytes, PROT_NONE, kReserveFlags, -1, 0);
  if (start == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no address range of this size is free in this process: bytes=",
        bytes));
  }
  return std::make_unique<HostRange>(start, bytes, protection);
}

absl::Status HostMapper::CopyToHost(void* to, const void* from_device,
                                    uint64_t bytes) {
  std::memcpy(to, from_device, bytes);
  return absl::OkStatus();
}

absl::Status HostMapper::CopyToDevice(void* to_device, const void* from,
                                      uint64_t bytes) {
  std::memcpy(to_device, from, bytes);
  return absl::OkStatus();
}

absl::Status HostMapper::Fill(void* device, uint8_t value, uint64_t bytes) {
  std::memset(device, value, bytes);
  return absl::OkStatus();
}

}  // namespace gmb::device
