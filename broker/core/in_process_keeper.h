#ifndef GMB_BROKER_CORE_IN_PROCESS_KEEPER_H_
#define GMB_BROKER_CORE_IN_PROCESS_KEEPER_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "broker/core/keeper.h"

namespace gmb::broker {

// Keeps the handles in the broker itself: memory ends with the broker.
class InProcessKeeper : public Keeper {
 public:
  absl::Status Put(SlabId slab, device::ShareableHandle handle) override;
  absl::Status Remove(SlabId slab) override;
  SharedHandle Get(SlabId slab) const override;
  std::vector<SlabId> List() const override;

 private:
  mutable base::Mutex mu_;
  absl::flat_hash_map<SlabId, SharedHandle> handles_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_IN_PROCESS_KEEPER_H_
