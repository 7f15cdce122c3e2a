#ifndef GMB_TESTS_DEVICE_FAULTY_COPY_ENGINE_H_
#define GMB_TESTS_DEVICE_FAULTY_COPY_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/copy_engine.h"

namespace gmb::device {

// When a FaultyCopyEngine fails. Settings and counts may be used from any
// thread.
struct CopyFaults {
  enum class Op { kMap, kUnmap, kBegin, kFinish };
  static constexpr int kOps = 4;

  // The k-th call of an op from the start on fails; 0: none.
  std::atomic<uint64_t> fail_call[kOps] = {};
  // So many of 1,000 calls fail, whichever they are.
  std::atomic<uint32_t> per_mille{0};

  std::atomic<uint64_t> calls[kOps] = {};
  std::atomic<int64_t> mapped{0};  // slabs
  std::atomic<int64_t> flying{0};  // copies begun and not finished
};

// A real engine that fails when told to, and keeps the promises that
// copy_engine.h makes of failed calls. `faults` must outlive it.
class FaultyCopyEngine final : public CopyEngine {
 public:
  FaultyCopyEngine(std::unique_ptr<CopyEngine> real, CopyFaults* faults,
                   unsigned seed)
      : real_(std::move(real)), faults_(faults), random_(seed) {}

  absl::StatusOr<void*> Map(const ShareableHandle& slab,
                            uint64_t bytes) override {
    if (Fails(CopyFaults::Op::kMap)) return Failure();
    absl::StatusOr<void*> mapped = real_->Map(slab, bytes);
    if (mapped.ok()) ++faults_->mapped;
    return mapped;
  }
  absl::Status Unmap(void* slab, uint64_t bytes) override {
    const bool fails = Fails(CopyFaults::Op::kUnmap);
    absl::Status status = real_->Unmap(slab, bytes);
    --faults_->mapped;
    return fails ? Failure() : status;
  }
  absl::Status Begin(CopyDirection direction, void* slab, void* host,
                     uint64_t bytes) override {
    if (Fails(CopyFaults::Op::kBegin)) return Failure();
    absl::Status status = real_->Begin(direction, slab, host, bytes);
    if (status.ok()) ++faults_->flying;
    return status;
  }
  absl::Status FinishOldest() override {
    const bool fails = Fails(CopyFaults::Op::kFinish);
    absl::Status status = real_->FinishOldest();
    --faults_->flying;
    return fails ? Failure() : status;
  }

  static absl::Status Failure() {
    return absl::InternalError("an injected fault");
  }

 private:
  bool Fails(CopyFaults::Op op) {
    const auto i = static_cast<size_t>(op);
    return ++faults_->calls[i] == faults_->fail_call[i] ||
           random_() % 1000 < faults_->per_mille;
  }

  const std::unique_ptr<CopyEngine> real_;
  CopyFaults* const faults_;
  std::mt19937 random_;
};

}  // namespace gmb::device

#endif  // GMB_TESTS_DEVICE_FAULTY_COPY_ENGINE_H_
