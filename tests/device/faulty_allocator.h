#ifndef GMB_TESTS_DEVICE_FAULTY_ALLOCATOR_H_
#define GMB_TESTS_DEVICE_FAULTY_ALLOCATOR_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "device/allocator.h"

namespace gmb::device {

// An allocator that fails when told to: the k-th call of a kind from now on,
// or that one and all later ones. A failing call does not reach the real
// allocator. It can also play a process that takes device memory past us.
// The settings may be changed from any thread.
class FaultyAllocator final : public Allocator {
 public:
  enum class Op { kCreate, kDestroy, kFreeBytes, kImport };

  explicit FaultyAllocator(std::unique_ptr<Allocator> real)
      : real_(std::move(real)), info_(real_->info()) {}

  // Sets the kind that it says it is. Before others use it.
  void SetKind(DeviceKind kind) { info_.kind = kind; }

  // `k` is 1 for the next call. A later setting for the same op replaces an
  // earlier one.
  void FailOnce(Op op, uint64_t k, absl::Status status) {
    Set(op, k, k, std::move(status));
  }
  void FailFrom(Op op, uint64_t k, absl::Status status) {
    Set(op, k, UINT64_MAX, std::move(status));
  }
  void Heal() {
    const base::MutexLock lock(&mutex_);
    for (Fault& fault : faults_) fault.last = 0;
    outside_bytes_ = 0;
    users_.clear();
  }

  // Another process holds this much: FreeBytes is lower by it, and a Create
  // that does not fit beside it is RESOURCE_EXHAUSTED.
  void SetOutsideBytes(uint64_t bytes) {
    const base::MutexLock lock(&mutex_);
    outside_bytes_ = bytes;
  }

  // A process `pid` takes the bytes of the next slab that is destroyed, before
  // anybody else can, and the driver says so.
  void StealNextDestroyed(pid_t pid) {
    const base::MutexLock lock(&mutex_);
    thief_ = pid;
  }

  // Calls so far, failed ones included.
  [[nodiscard]] uint64_t calls(Op op) const {
    const base::MutexLock lock(&mutex_);
    return faults_[static_cast<size_t>(op)].calls;
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }

  [[nodiscard]] absl::StatusOr<CreatedSlab> Create(uint64_t bytes) override {
    if (absl::Status status = Count(Op::kCreate); !status.ok()) return status;
    if (outside_bytes() != 0) {
      absl::StatusOr<uint64_t> free_bytes = FreeBesideOutside();
      if (!free_bytes.ok()) return free_bytes.status();
      if (bytes > *free_bytes) {
        return absl::ResourceExhaustedError("memory is held outside");
      }
    }
    return real_->Create(bytes);
  }

  [[nodiscard]] absl::StatusOr<SlabKey> Import(const ShareableHandle& handle,
                                               uint64_t bytes) override {
    if (absl::Status status = Count(Op::kImport); !status.ok()) return status;
    return real_->Import(handle, bytes);
  }

  [[nodiscard]] absl::Status Destroy(SlabKey key) override {
    if (absl::Status status = Count(Op::kDestroy); !status.ok()) return status;
    const absl::StatusOr<uint64_t> before = real_->FreeBytes();
    const absl::Status destroyed = real_->Destroy(key);
    const absl::StatusOr<uint64_t> after = real_->FreeBytes();
    const base::MutexLock lock(&mutex_);
    if (thief_ != 0 && before.ok() && after.ok() && *after > *before) {
      outside_bytes_ += *after - *before;
      users_.push_back({std::exchange(thief_, 0), *after - *before});
    }
    return destroyed;
  }

  [[nodiscard]] absl::StatusOr<uint64_t> FreeBytes() override {
    if (absl::Status status = Count(Op::kFreeBytes); !status.ok()) {
      return status;
    }
    return FreeBesideOutside();
  }

  [[nodiscard]] std::vector<HeldSlab> Held() const override {
    return real_->Held();
  }

  [[nodiscard]] absl::StatusOr<std::vector<ProcessUsage>> Processes() override {
    const base::MutexLock lock(&mutex_);
    return users_;
  }

 private:
  struct Fault {
    uint64_t calls = 0;
    uint64_t first = 1;  // fails while first <= calls <= last
    uint64_t last = 0;
    absl::Status status;
  };

  void Set(Op op, uint64_t k, uint64_t last, absl::Status status) {
    const base::MutexLock lock(&mutex_);
    Fault& fault = faults_[static_cast<size_t>(op)];
    fault.first = fault.calls + k;
    fault.last = last == UINT64_MAX ? last : fault.calls + last;
    fault.status = std::move(status);
  }

  absl::Status Count(Op op) {
    const base::MutexLock lock(&mutex_);
    Fault& fault = faults_[static_cast<size_t>(op)];
    ++fault.calls;
    const bool fails = fault.first <= fault.calls && fault.calls <= fault.last;
    return fails ? fault.status : absl::OkStatus();
  }

  uint64_t outside_bytes() const {
    const base::MutexLock lock(&mutex_);
    return outside_bytes_;
  }

  absl::StatusOr<uint64_t> FreeBesideOutside() {
    absl::StatusOr<uint64_t> free_bytes = real_->FreeBytes();
    if (!free_bytes.ok()) return free_bytes;
    return *free_bytes - std::min(*free_bytes, outside_bytes());
  }

  const std::unique_ptr<Allocator> real_;
  DeviceInfo info_;
  mutable base::Mutex mutex_;
  std::array<Fault, 4> faults_ ABSL_GUARDED_BY(mutex_);
  uint64_t outside_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<ProcessUsage> users_ ABSL_GUARDED_BY(mutex_);
  pid_t thief_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gmb::device

#endif  // GMB_TESTS_DEVICE_FAULTY_ALLOCATOR_H_
