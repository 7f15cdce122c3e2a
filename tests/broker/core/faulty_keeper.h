#ifndef GMB_TESTS_BROKER_CORE_FAULTY_KEEPER_H_
#define GMB_TESTS_BROKER_CORE_FAULTY_KEEPER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "broker/core/keeper.h"

namespace gmb::broker {

// A keeper that refuses the k-th Put or Remove, or that one and all later ones.
// A Put that is refused keeps nothing; a Remove that is refused is done all the
// same, as by one that dies before it answers.
class FaultyKeeper final : public Keeper {
 public:
  enum Op { kPut, kRemove };

  // Before it is used; `real` must outlive all use.
  void SetReal(Keeper* real) { real_ = real; }
  void Fail(Op op, uint64_t first, uint64_t last, absl::Status status) {
    const base::MutexLock lock(&mu_);
    faults_[op] = {0, first, last, std::move(status)};
  }
  void Heal() {
    const base::MutexLock lock(&mu_);
    for (Fault& fault : faults_) fault.last = 0;
  }
  [[nodiscard]] uint64_t calls(Op op) const {
    const base::MutexLock lock(&mu_);
    return faults_[op].calls;
  }

  absl::Status Put(SlabId slab, device::ShareableHandle handle) override {
    if (absl::Status status = Count(kPut); !status.ok()) return status;
    return real_->Put(slab, std::move(handle));
  }
  absl::Status Remove(SlabId slab) override {
    const absl::Status refused = Count(kRemove);
    absl::Status removed = real_->Remove(slab);
    removed.Update(refused);
    return removed;
  }
  [[nodiscard]] SharedHandle Get(SlabId slab) const override {
    return real_->Get(slab);
  }
  [[nodiscard]] std::vector<SlabId> List() const override {
    return real_->List();
  }

 private:
  struct Fault {
    uint64_t calls = 0;
    uint64_t first = 1;
    uint64_t last = 0;
    absl::Status status;
  };

  absl::Status Count(Op op) {
    const base::MutexLock lock(&mu_);
    Fault& fault = faults_[op];
    ++fault.calls;
    const bool fails = fault.first <= fault.calls && fault.calls <= fault.last;
    return fails ? fault.status : absl::OkStatus();
  }

  Keeper* real_ = nullptr;
  mutable base::Mutex mu_;
  Fault faults_[2] ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_CORE_FAULTY_KEEPER_H_
