// Stores each slab's handle between its creation and its end, in the broker
// itself: memory ends with the broker.
#include "broker/core/in_process_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gmb::broker {

absl::Status InProcessKeeper::Put(SlabId slab, device::ShareableHandle handle) {
  auto shared =
      std::make_shared<const device::ShareableHandle>(std::move(handle));
  base::MutexLock lock(&mu_);
  if (!handles_.try_emplace(slab, std::move(shared)).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("slab is already kept: slab=", slab));
  }
  return absl::OkStatus();
}

absl::Status InProcessKeeper::Remove(SlabId slab) {
  SharedHandle removed;  // closed after the lock is given up
  base::MutexLock lock(&mu_);
  auto it = handles_.find(slab);
  if (it == handles_.end()) {
    return absl::NotFoundError(absl::StrCat("slab is not kept: slab=", slab));
  }
  removed = std::move(it->second);
  handles_.erase(it);
  return absl::OkStatus();
}

SharedHandle InProcessKeeper::Get(SlabId slab) const {
  base::MutexLock lock(&mu_);
  auto it = handles_.find(slab);
  return it == handles_.end() ? nullptr : it->second;
}

std::vector<SlabId> InProcessKeeper::List() const {
  base::MutexLock lock(&mu_);
  std::vector<SlabId> slabs;
  slabs.reserve(handles_.size());
  for (const auto& [slab, handle] : handles_) slabs.push_back(slab);
  return slabs;
}

}  // namespace gmb::broker
