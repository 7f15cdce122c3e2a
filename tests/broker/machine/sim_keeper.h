#ifndef GMB_TESTS_BROKER_MACHINE_SIM_KEEPER_H_
#define GMB_TESTS_BROKER_MACHINE_SIM_KEEPER_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "broker/core/in_process_keeper.h"

namespace gmb::broker {

// A keeper that can be silent: then it still has what is removed.
class SimKeeper final : public InProcessKeeper {
 public:
  // `keep` is told of each slab that is removed from a silent one.
  explicit SimKeeper(std::function<void(SlabId)> keep)
      : keep_(std::move(keep)) {}

  void SetSilent(bool silent) { silent_ = silent; }
  absl::Status Remove(SlabId slab) override {
    if (silent_) keep_(slab);
    return InProcessKeeper::Remove(slab);
  }
  bool KeepsRemoved() const override { return silent_; }

 private:
  const std::function<void(SlabId)> keep_;
  bool silent_ = false;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_MACHINE_SIM_KEEPER_H_
