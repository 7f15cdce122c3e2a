// Room in the host pool that is promised to Acquires that wait.
#include "broker/machine/room_promises.h"

namespace gmb::broker {

bool RoomPromises::LeaveRoomFor(const HostBooks& books, quota::TenantId tenant,
                                uint64_t bytes) const {
  const auto own = tenants_.find(tenant);
  const uint64_t own_bytes = own == tenants_.end() ? 0 : own->second;
  return bytes + all_bytes_ <= books.unreserved_bytes() &&
         books.HasRoomFor(tenant, bytes + own_bytes);
}

void RoomPromises::Add(quota::RequestId request, quota::TenantId tenant,
                       uint64_t bytes) {
  promises_.emplace(request, Promise{.tenant = tenant, .bytes = bytes});
  all_bytes_ += bytes;
  tenants_[tenant] += bytes;
}

bool RoomPromises::End(quota::RequestId request) {
  const auto found = promises_.find(request);
  if (found == promises_.end()) return false;
  const auto [tenant, bytes] = found->second;
  promises_.erase(found);
  all_bytes_ -= bytes;
  const auto own = tenants_.find(tenant);
  own->second -= bytes;
  if (own->second == 0) tenants_.erase(own);
  return true;
}

}  // namespace gmb::broker
