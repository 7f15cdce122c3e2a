#ifndef GMB_BROKER_KEEPING_REMOTE_KEEPER_H_
#define GMB_BROKER_KEEPING_REMOTE_KEEPER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "broker/core/keeper.h"
#include "broker/keeping/keeper_client.h"

namespace gmb::broker {

// Keeps the slabs' handles with a keeper, so that memory outlives the broker;
// and in this process too, which passes them on without asking.
//
// A handle that cannot be kept stays here alone, and ends with the broker: one
// without an fd (ipc), and one that the keeper refused because it is full.
class RemoteKeeper : public Keeper {
 public:
  // `client` must outlive it; the rest of what it keeps is other people's.
  explicit RemoteKeeper(KeeperClient* client) : client_(client) {}

  absl::Status Put(SlabId slab, device::ShareableHandle handle) override;
  absl::Status Remove(SlabId slab) override;
  SharedHandle Get(SlabId slab) const override;
  std::vector<SlabId> List() const override;
  bool KeepsRemoved() const override { return client_->silent(); }

  // Slabs that the keeper has refused, and that were not removed since. Never
  // waits for the keeper.
  [[nodiscard]] uint64_t not_kept() const ABSL_LOCKS_EXCLUDED(mu_);

  // Told of each Get: while a broker takes over it is about to use the slab.
  // Before others use this; null from the end of that on.
  void SetOnGet(std::function<void(SlabId)> on_get) {
    on_get_ = std::move(on_get);
  }
  // One that the last broker has put; INVALID_ARGUMENT if `kept` is no slab.
  absl::Status Adopt(const Kept& kept);

  // "slab/17", and back.
  [[nodiscard]] static std::string KeyOf(SlabId slab);
  [[nodiscard]] static std::optional<SlabId> SlabOf(absl::string_view key);

 private:
  KeeperClient* const client_;
  std::function<void(SlabId)> on_get_;
  mutable base::Mutex mu_;
  absl::flat_hash_map<SlabId, SharedHandle> handles_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<SlabId> not_kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_REMOTE_KEEPER_H_
