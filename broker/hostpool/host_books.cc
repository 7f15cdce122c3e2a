// Grant and eviction: room for contents is reserved, placed, and made true.
#include "broker/hostpool/host_books.h"

#include <algorithm>

namespace gmb::broker {
namespace {

const std::vector<device::HostExtent>& NoPlace() {
  static const std::vector<device::HostExtent>& none =
      *new std::vector<device::HostExtent>;
  return none;
}

uint64_t BytesOf(const std::vector<device::HostExtent>& extents) {
  uint64_t bytes = 0;
  for (const device::HostExtent& extent : extents) bytes += extent.bytes;
  return bytes;
}

}  // namespace

HostBooks::Tenant& HostBooks::TenantOf(quota::TenantId tenant) {
  return tenants_.try_emplace(tenant, Tenant{.limit_bytes = capacity_})
      .first->second;
}

HostBooks::Room* HostBooks::Find(quota::LeaseId lease) {
  const auto room = leases_.find(lease);
  return room == leases_.end() ? nullptr : &room->second;
}

void HostBooks::SetLimit(quota::TenantId tenant, uint64_t bytes) {
  TenantOf(tenant).limit_bytes = bytes;
  ++gains_;
}

void HostBooks::ForgetTenant(quota::TenantId tenant) {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return;
  if (found->second.amounts.reserved_bytes == 0) {
    tenants_.erase(found);
  } else {
    found->second.limit_bytes = 0;
  }
}

uint64_t HostBooks::limit_bytes(quota::TenantId tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? capacity_ : found->second.limit_bytes;
}

HostBooks::Amounts HostBooks::of(quota::TenantId tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? Amounts{} : found->second.amounts;
}

HostBooks::Answer HostBooks::CheckRoom(quota::TenantId tenant,
                                       uint64_t bytes) const {
  if (capacity_ == 0) return {Outcome::kOff, bytes};
  const uint64_t limit = limit_bytes(tenant);
  const uint64_t allowed = limit - std::min(limit, of(tenant).reserved_bytes);
  if (bytes > allowed) return {Outcome::kTenantLimit, bytes - allowed};
  if (bytes > unreserved_bytes()) {
    return {Outcome::kPoolFull, bytes - unreserved_bytes()};
  }
  return {Outcome::kReserved};
}

HostBooks::Answer HostBooks::Reserve(quota::TenantId tenant,
                                     quota::LeaseId lease, uint64_t bytes) {
  if (HasRoom(lease)) return {Outcome::kReserved};
  const Answer answer = CheckRoom(tenant, bytes);
  if (answer.outcome != Outcome::kReserved) return answer;
  TenantOf(tenant).amounts.reserved_bytes += bytes;
  total_.reserved_bytes += bytes;
  leases_.emplace(lease, Room{.tenant = tenant, .bytes = bytes});
  return answer;
}

bool HostBooks::Adopt(quota::TenantId tenant, quota::LeaseId lease,
                      uint64_t bytes,
                      const std::vector<device::HostExtent>& copy) {
  if (HasRoom(lease) || bytes > unreserved_bytes()) return false;
  if (!copy.empty() && (BytesOf(copy) != bytes || !free_.TakeThese(copy)))
    return false;
  Amounts& tenants = TenantOf(tenant).amounts;
  for (Amounts* amounts : {&tenants, &total_}) {
    amounts->reserved_bytes += bytes;
    if (!copy.empty()) amounts->placed_bytes += bytes;
  }
  leases_.emplace(lease, Room{.tenant = tenant, .bytes = bytes, .place = copy});
  if (!copy.empty()) MarkTrue(lease);
  return true;
}

const std::vector<device::HostExtent>& HostBooks::Place(quota::LeaseId lease) {
  Room* const room = Find(lease);
  if (room == nullptr || room->is_true) return NoPlace();
  if (room->place.empty()) {
    // Only reserved bytes are placed, and no more is reserved than there is: it
    // fits.
    room->place = free_.Take(room->bytes);
    TenantOf(room->tenant).amounts.placed_bytes += room->bytes;
    total_.placed_bytes += room->bytes;
  }
  return room->place;
}

void HostBooks::SetTrue(Room* room, bool is_true) {
  if (room->is_true == is_true || room->place.empty()) return;
  room->is_true = is_true;
  Tenant& tenant = TenantOf(room->tenant);
  for (Amounts* amounts : {&tenant.amounts, &total_}) {
    is_true ? amounts->true_bytes += room->bytes
            : amounts->true_bytes -= room->bytes;
  }
}

void HostBooks::MarkTrue(quota::LeaseId lease) {
  if (Room* const room = Find(lease)) SetTrue(room, true);
}

void HostBooks::MarkUntrue(quota::LeaseId lease) {
  if (Room* const room = Find(lease)) SetTrue(room, false);
}

const std::vector<device::HostExtent>* HostBooks::TrueCopy(
    quota::LeaseId lease) const {
  const auto room = leases_.find(lease);
  if (room == leases_.end() || !room->second.is_true) return nullptr;
  return &room->second.place;
}

void HostBooks::Release(quota::LeaseId lease) {
  Room* const room = Find(lease);
  if (room == nullptr) return;
  SetTrue(room, false);
  Amounts& tenant = TenantOf(room->tenant).amounts;
  if (!room->place.empty()) {
    free_.Give(room->place);
    tenant.placed_bytes -= room->bytes;
    total_.placed_bytes -= room->bytes;
  }
  tenant.reserved_bytes -= room->bytes;
  total_.reserved_bytes -= room->bytes;
  leases_.erase(lease);
  ++gains_;
}

}  // namespace gmb::broker
