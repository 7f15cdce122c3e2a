// A lease's addresses, and what is mapped there, until its release.
#include "client/lease/mapped_lease.h"

namespace gmb::internal {

MappedLease::MappedLease(std::shared_ptr<device::Mapper> mapper,
                         std::unique_ptr<device::MappedRange> range,
                         std::vector<std::string> access, bool attached)
    : mapper_(std::move(mapper)),
      access_(std::move(access)),
      attached_(attached),
      data_(range->data()),
      size_bytes_(range->size_bytes()),
      range_(std::move(range)) {}

absl::Status MappedLease::Evict() {
  base::MutexLock lock(&mu_);
  if (!mapped_) return absl::OkStatus();
  if (mapper_->info().kind == device::DeviceKind::kIpc) {
    return absl::FailedPreconditionError(
        "a lease of an ipc device cannot be mapped again at its addresses: it "
        "stays");
  }
  absl::Status unmapped = range_->Unmap();
  mapped_ = !unmapped.ok();
  return unmapped;
}

absl::Status MappedLease::Map(std::vector<device::ShareableHandle> handles,
                              absl::Span<const uint64_t> slab_bytes) {
  base::MutexLock lock(&mu_);
  if (range_ == nullptr) {
    return absl::NotFoundError("the lease was released meanwhile");
  }
  // A broker that took over asks again, for it cannot know. Until an Evict the
  // lease's slabs stay the same.
  if (mapped_) return absl::OkStatus();
  absl::Status mapped = range_->Map(std::move(handles), slab_bytes);
  mapped_ = mapped.ok();
  return mapped;
}

absl::Status MappedLease::Release() {
  base::MutexLock lock(&mu_);
  if (range_ == nullptr) return absl::OkStatus();
  absl::Status unmapped = range_->Unmap();
  range_.reset();
  mapped_ = false;
  return unmapped;
}

absl::Status MappedLease::ReleaseIdle() {
  base::MutexLock lock(&mu_);
  if (range_ == nullptr) return absl::OkStatus();
  absl::Status unmapped = range_->UnmapIdle();
  range_.reset();
  mapped_ = false;
  return unmapped;
}

bool MappedLease::mapped() const {
  base::MutexLock lock(&mu_);
  return mapped_;
}

absl::Status MappedLease::Evicted() {
  return absl::FailedPreconditionError(
      "gmb: the lease is evicted: enter the session's gate before using it");
}

}  // namespace gmb::internal
