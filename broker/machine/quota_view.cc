// A tenant's quota and use on a pool, as its clients are told.
#include "broker/machine/quota_view.h"

#include <optional>

namespace gmb::broker {

v1::QuotaView View(const State& state, quota::TenantId tenant,
                   const Pool& pool) {
  v1::QuotaView proto;
  proto.set_device(pool.uuid());
  proto.set_pool_bytes(state.engine->Pool(pool.id)->capacity_bytes);
  const std::optional<quota::TenantPoolView> view =
      state.engine->TenantPool(tenant, pool.id);
  if (!view.has_value()) return proto;
  proto.set_guarantee_bytes(view->effective_guarantee_bytes);
  proto.set_limit_bytes(view->limit_bytes);
  proto.set_weight(view->quota.weight);
  proto.set_leased_bytes(view->leased_bytes);
  proto.set_unreturned_bytes(view->unreturned_bytes);
  proto.set_obtainable_bytes(view->obtainable_bytes);
  proto.set_over_limit_bytes(view->over_limit_bytes);
  proto.set_evicted_bytes(view->evicted_bytes);
  return proto;
}

}  // namespace gmb::broker
