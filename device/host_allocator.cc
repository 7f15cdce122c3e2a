#include "device/host_allocator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "device/sealed_memory.h"
#include "device/sizes.h"

namespace gmb::device {
namespace {

// Fails where leases on memfds do not tell who holds them (another owner in a
// user namespace, a sandbox that emulates Linux), rather than hand out memory
// that could never be found again.
absl::Status TryLeases() {
  absl::StatusOr<ipc::UniqueFd> anchor =
      CreateSealedMemory(kHostGranularityBytes);
  if (!anchor.ok()) return anchor.status();
  absl::StatusOr<ipc::UniqueFd> exported = ReopenSealedMemory(*anchor);
  if (!exported.ok()) return exported.status();
  absl::StatusOr<bool> held = SomebodyHolds(*anchor, kHostGranularityBytes);
  exported->reset();
  absl::StatusOr<bool> alone = SomebodyHolds(*anchor, kHostGranularityBytes);
  if (held.ok() && alone.ok() && *held && !*alone) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the host device can not tell here who holds a memfd (fcntl "
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
  if (absl::Status status = TryLeases(); !status.ok()) return status;
  DeviceInfo info{.kind = DeviceKind::kHost,
                  .uuid = std::move(options.uuid),
                  .name = "host memory",
                  .total_bytes = options.capacity_bytes -
                                 options.capacity_bytes % kHostGranularityBytes,
                  .granularity_bytes = kHostGranularityBytes};
  return std::unique_ptr<Allocator>(new HostAllocator(std::move(info)));
}

absl::Status HostAllocator::CollectReturned() {
  for (size_t i = 0; i < held_.size();) {
    absl::StatusOr<bool> held = SomebodyHolds(held_[i].anchor, held_[i].bytes);
    if (!held.ok()) return held.status();
    if (*held) {
      ++i;
      continue;
    }
    used_bytes_ -= held_[i].bytes;
    std::swap(held_[i], held_.back());
    held_.pop_back();
  }
  return absl::OkStatus();
}

absl::StatusOr<CreatedSlab> HostAllocator::Create(uint64_t bytes) {
  if (absl::Status status = CheckSize(bytes, kHostGranularityBytes);
      !status.ok()) {
    return status;
  }
  if (bytes > info_.total_bytes - used_bytes_) {
    if (absl::Status status = CollectReturned(); !status.ok()) return status;
  }
  const uint64_t free_bytes = info_.total_bytes - used_bytes_;
  if (bytes > free_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("host device is full: requested=", bytes,
                     " free=", free_bytes, " capacity=", info_.total_bytes));
  }
  absl::StatusOr<ipc::UniqueFd> anchor = CreateSealedMemory(bytes);
  if (!anchor.ok()) return anchor.status();
  absl::StatusOr<ipc::UniqueFd> exported = ReopenSealedMemory(*anchor);
  if (!exported.ok()) return exported.status();
  const SlabKey key = next_key_++;
  live_.emplace(key, Slab{.anchor = *std::move(anchor), .bytes = bytes});
  used_bytes_ += bytes;
  return CreatedSlab{.key = key, .exported = *std::move(exported)};
}

absl::Status HostAllocator::Destroy(SlabKey key) {
  const auto slab = live_.find(key);
  if (slab == live_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no such slab on ", info_.uuid, ": key=", key));
  }
  Slab destroyed = std::move(slab->second);
  live_.erase(slab);
  const absl::StatusOr<bool> held =
      SomebodyHolds(destroyed.anchor, destroyed.bytes);
  if (held.ok() && !*held) {
    used_bytes_ -= destroyed.bytes;
    return absl::OkStatus();
  }
  held_.push_back(std::move(destroyed));
  return held.status();
}

absl::StatusOr<uint64_t> HostAllocator::FreeBytes() {
  if (absl::Status status = CollectReturned(); !status.ok()) return status;
  return info_.total_bytes - used_bytes_;
}

}  // namespace gmb::device
