// The machine's knowledge, and how its parts are found by their ids.
#include "broker/machine/state.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace gmb::broker {
namespace {

// An id that leads nowhere is a fault of the broker's own books.
[[noreturn]] void EndWithout(const char* what, uint64_t id) {
  std::fprintf(stderr,
               "gmbd: the books name a %s that is not there: id=%llu; this is "
               "a defect of gmbd: please report it\n",
               what, static_cast<unsigned long long>(id));
  std::abort();
}

}  // namespace

State::State(MachineOptions machine_options, uint64_t host_pool_bytes)
    : options(std::move(machine_options)),
      engine(std::in_place,
             quota::EngineOptions{.max_handles = options.max_handles}),
      next_request(std::in_place, 1),
      host_books(std::in_place, host_pool_bytes),
      backing_budget(std::in_place, options.backing) {}

Pool& State::PoolAt(quota::PoolId id) const {
  const auto pool = pools->find(id);
  if (pool == pools->end()) EndWithout("pool", id.value);
  return *pool->second;
}

Session& State::SessionAt(uint64_t id) const {
  Session* session = sessions->Find(id);
  if (session == nullptr) EndWithout("session", id);
  return *session;
}

Lease& State::LeaseAt(quota::LeaseId id) const {
  const auto lease = leases->find(id);
  if (lease == leases->end()) EndWithout("lease", id.value);
  return *lease->second;
}

const Tenant& State::TenantAt(quota::TenantId id) const {
  const Tenant* tenant = tenants->Find(id);
  if (tenant == nullptr) EndWithout("tenant", id.value);
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
