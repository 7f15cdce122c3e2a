// Grant: slabs of the host device are created, and found again when kept.
#include "device/host/host_allocator.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device/host/sealed_memory.h"
#include "device/sizes.h"

namespace gmb::device {
namespace {

// Fails where leases on memfds do not tell who holds them (another owner in a
// user namespace, a sandbox that emulates Linux), rather than hand out memory
// that could never be found again.
absl::Status TryLeases() {
  GMB_ASSIGN_OR_RETURN(base::UniqueFd anchor,
                       CreateSealedMemory(kHostGranularityBytes));
  GMB_ASSIGN_OR_RETURN(base::UniqueFd exported, ReopenSealedMemory(anchor));
  absl::StatusOr<bool> held = SomebodyHolds(anchor, kHostGranularityBytes);
  exported.reset();
  absl::StatusOr<bool> alone = SomebodyHolds(anchor, kHostGranularityBytes);
  if (held.ok() && alone.ok() && *held && !*alone) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the host device cannot tell here who holds a memfd (fcntl "
      "F_SETLEASE): run on Linux 5.10 or newer, outside such a sandbox: ",
      held.ok() ? alone.status().message() : held.status().message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Allocator>> HostAllocator::Open(
    HostOptions options) {
  constexpr uint64_t kLargest = uint64_t{1} << 62;  // files count in off_t
  if (options.capacity_bytes < kHostGranularityBytes ||
      options.capacity_bytes > kLargest) {
    return absl::InvalidArgumentError(absl::StrCat(
        "capacity of a host device must be between 2 MiB and 4 EiB: bytes=",
        options.capacity_bytes));
  }
  GMB_RETURN_IF_ERROR(TryLeases());
  DeviceInfo info{.kind = DeviceKind::kHost,
                  .uuid = std::move(options.uuid),
                  .name = "host memory",
                  .total_bytes = options.capacity_bytes -
                                 options.capacity_bytes % kHostGranularityBytes,
                  .granularity_bytes = kHostGranularityBytes};
  return std::unique_ptr<Allocator>(new HostAllocator(std::move(info)));
}

// A slab about which the kernel does not answer holds up no other: it is left
// counted as held, and asked about again at every look.
bool HostAllocator::IsReturned(Unreturned* unreturned) {
  const absl::StatusOr<bool> held =
      SomebodyHolds(unreturned->slab.anchor, unreturned->slab.bytes);
  unreturned->stuck = std::string(held.status().message());
  return held.ok() && !*held;
}

void HostAllocator::CollectReturned() {
  for (size_t i = 0; i < unreturned_.size();) {
    if (!IsReturned(&unreturned_[i])) {
      ++i;
      continue;
    }
    used_bytes_ -= unreturned_[i].slab.bytes;
    std::swap(unreturned_[i], unreturned_.back());
    unreturned_.pop_back();
  }
}

absl::Status HostAllocator::CheckRoom(uint64_t bytes) {
  GMB_RETURN_IF_ERROR(CheckSize(bytes, kHostGranularityBytes));
  if (bytes > info_.total_bytes - used_bytes_) {
    CollectReturned();
  }
  const uint64_t free_bytes = info_.total_bytes - used_bytes_;
  if (bytes <= free_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("host device is full: requested=", bytes,
                   " free=", free_bytes, " capacity=", info_.total_bytes));
}

SlabKey HostAllocator::Add(base::UniqueFd anchor, uint64_t bytes) {
  const SlabKey key = next_key_++;
  live_.emplace(key, Slab{.anchor = std::move(anchor), .bytes = bytes});
  used_bytes_ += bytes;
  return key;
}

absl::StatusOr<CreatedSlab> HostAllocator::Create(uint64_t bytes) {
  GMB_RETURN_IF_ERROR(CheckRoom(bytes));
  GMB_ASSIGN_OR_RETURN(base::UniqueFd anchor, CreateSealedMemory(bytes));
  GMB_ASSIGN_OR_RETURN(base::UniqueFd exported, ReopenSealedMemory(anchor));
  return CreatedSlab{.key = Add(std::move(anchor), bytes),
                     .exported = std::move(exported)};
}

absl::StatusOr<SlabKey> HostAllocator::Import(const ShareableHandle& handle,
                                              uint64_t bytes) {
  GMB_RETURN_IF_ERROR(CheckRoom(bytes));
  const auto* const memory = std::get_if<base::UniqueFd>(&handle);
  if (memory == nullptr) {
    return absl::InvalidArgumentError(
        "a slab of the host device is kept as a file descriptor; got none");
  }
  GMB_ASSIGN_OR_RETURN(base::UniqueFd anchor,
                       AdoptSealedMemory(*memory, bytes));
  return Add(std::move(anchor), bytes);
}

absl::Status HostAllocator::Destroy(SlabKey key) {
  const auto slab = live_.find(key);
  if (slab == live_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no such slab on ", info_.uuid, ": key=", key));
  }
  Unreturned destroyed{
      .key = key, .slab = std::move(slab->second), .stuck = {}};
  live_.erase(slab);
  if (IsReturned(&destroyed)) {
    used_bytes_ -= destroyed.slab.bytes;
  } else {
    unreturned_.push_back(std::move(destroyed));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> HostAllocator::FreeBytes() {
  CollectReturned();
  return info_.total_bytes - used_bytes_;
}

std::vector<HeldSlab> HostAllocator::Held() const {
  std::vector<HeldSlab> held;
  held.reserve(unreturned_.size());
  for (const Unreturned& unreturned : unreturned_)
    held.push_back({unreturned.key, unreturned.slab.bytes, unreturned.stuck});
  return held;
}

}  // namespace gmb::device
