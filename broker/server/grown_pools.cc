// Sizes of pools that did not fit: looked at when a pool has grown.
#include "broker/server/grown_pools.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

namespace gmb::broker {
namespace {

std::optional<quota::Amount> StoredSize(const Declared& declared,
                                        const std::string& device) {
  const auto pool = declared.pools.find(device);
  if (pool == declared.pools.end()) return std::nullopt;
  const Written* const size = InForce(pool->second, kPoolSize);
  return size == nullptr ? std::nullopt : ReadAmount(size->value);
}

}  // namespace

bool HasSize(const v1::PoolStatus& pool, const quota::Amount& size) {
  if (size.is_fraction()) return true;
  const uint64_t granule =
      std::max<uint64_t>(1, pool.device().granularity_bytes());
  return size.bytes() / granule * granule <= pool.target_bytes();
}

void GrownPools::Start() {
  subscription_ = events_->Subscribe([this](const v1::Event& event) {
    if (event.kind() == "pool_grown") QueueLook();
  });
  QueueLook();
}

void GrownPools::QueueLook() {
  if (look_queued_.exchange(true)) return;
  calls_->Post([this] {
    look_queued_ = false;
    Look();
  });
}

void GrownPools::Look() {
  const std::shared_ptr<const Declared> declared = store_->Shown();
  const v1::GetStatusResponse status = core_->Status();
  for (const v1::PoolStatus& pool : status.pools()) {
    const std::string& device = pool.device().uuid();
    const std::optional<quota::Amount> size = StoredSize(*declared, device);
    if (size.has_value() && HasSize(pool, *size))
      not_in_force_->Settle(DroppedPool(device));
  }
}

}  // namespace gmb::broker
