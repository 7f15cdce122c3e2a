// The machine's knowledge, and how its parts are found by their ids.
#include "broker/machine/state.h"

#include <utility>

#include "quota/must_find.h"

namespace gmb::broker {

State::State(MachineOptions machine_options, uint64_t host_pool_bytes)
    : options(std::move(machine_options)),
      engine(std::in_place,
             quota::EngineOptions{.max_handles = options.max_handles}),
      next_request(std::in_place, 1),
      host_books(std::in_place, host_pool_bytes),
      backing_budget(std::in_place, options.backing) {}

State::State(const State& other) = default;

State::~State() = default;

Pool& State::PoolAt(quota::PoolId id) const {
  return *quota::MustFind(*pools, id, "pool");
}

Session& State::SessionAt(uint64_t id) const {
  Session* session = sessions->Find(id);
  if (session == nullptr)
    quota::EndForBrokenBooks("session", id, __FILE__, __LINE__);
  return *session;
}

Lease& State::LeaseAt(quota::LeaseId id) const {
  return *quota::MustFind(*leases, id, "lease");
}

const Tenant& State::TenantAt(quota::TenantId id) const {
  const Tenant* tenant = tenants->Find(id);
  if (tenant == nullptr)
    quota::EndForBrokenBooks("tenant", id.value, __FILE__, __LINE__);
  return *tenant;
}

Pool* State::FindPool(absl::string_view device) const {
  if (device.empty())
    return pools->size() == 1 ? pools->begin()->second.get() : nullptr;
  for (const auto& [id, pool] : *pools) {
    if (pool->uuid() == device) return pool.get();
  }
  return nullptr;
}

}  // namespace gmb::broker
