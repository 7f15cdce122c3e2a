// `gmb run`: the handles that cuMemCreate gave, and where they are mapped.
#include "client/preload/virtual_handles.h"

#include <algorithm>
#include <iterator>

namespace gmb::preload {

VirtualHandles::Name VirtualHandles::Add(
    uint64_t bytes, const CUmemAllocationProp& properties) {
  const Name name = (kTag << kCounterBits) | ++last_;
  VirtualHandle& handle = handles_[name];
  handle.bytes = bytes;
  handle.properties = properties;
  return name;
}

VirtualHandle* VirtualHandles::Find(Name name) {
  const auto found = handles_.find(name);
  return found == handles_.end() ? nullptr : &found->second;
}

VirtualHandle* VirtualHandles::FindReferenced(Name name) {
  VirtualHandle* const handle = Find(name);
  return handle == nullptr || handle->references == 0 ? nullptr : handle;
}

bool VirtualHandles::IsUnused(Name name) const {
  const auto found = handles_.find(name);
  return found != handles_.end() && found->second.references == 0 &&
         found->second.mappings.empty();
}

std::optional<LeaseRange> VirtualHandles::LeaseIfUnused(Name name) const {
  if (!IsUnused(name)) return std::nullopt;
  return handles_.at(name).lease;
}

void VirtualHandles::UseAgain(Name name,
                              const CUmemAllocationProp& properties) {
  VirtualHandle& handle = handles_.at(name);
  handle.references = 1;
  handle.properties = properties;
}

std::optional<VirtualHandle> VirtualHandles::TakeUnused(Name name) {
  if (!IsUnused(name)) return std::nullopt;
  const auto found = handles_.find(name);
  VirtualHandle handle = std::move(found->second);
  handles_.erase(found);
  ForgetLease(name, handle);
  return handle;
}

void VirtualHandles::ForgetLease(Name name, const VirtualHandle& handle) {
  if (!handle.known_as.has_value()) return;
  const auto known = of_leases_.find(*handle.known_as);
  // It may be another handle's by now.
  if (known != of_leases_.end() && known->second == name)
    of_leases_.erase(known);
}

void VirtualHandles::NoteLease(Name name, const LeaseName& lease) {
  VirtualHandle* const handle = Find(name);
  if (handle == nullptr) return;
  ForgetLease(name, *handle);
  handle->known_as = lease;
  of_leases_[lease] = name;
}

std::optional<VirtualHandles::Name> VirtualHandles::OfLease(
    const LeaseName& lease) const {
  const auto known = of_leases_.find(lease);
  if (known == of_leases_.end() || IsUnused(known->second)) return std::nullopt;
  return known->second;
}

bool VirtualHandles::AddMapping(Name name, uint64_t start) {
  VirtualHandle& handle = handles_.at(name);
  bool whole = true;
  if (!In(start, handle.bytes, &whole).empty()) return false;
  handle.mappings.insert(start);
  mappings_[start] = {
      .start = start, .bytes = handle.bytes, .handle = name, .access = {}};
  return true;
}

VirtualHandles::Name VirtualHandles::RemoveMapping(uint64_t start) {
  const auto found = mappings_.find(start);
  const Name name = found->second.handle;
  mappings_.erase(found);
  handles_.at(name).mappings.erase(start);
  return name;
}

const VirtualMapping* VirtualHandles::At(uint64_t address) const {
  const auto behind = mappings_.upper_bound(address);
  if (behind == mappings_.begin()) return nullptr;
  const VirtualMapping& mapping = std::prev(behind)->second;
  return address - mapping.start < mapping.bytes ? &mapping : nullptr;
}

std::vector<VirtualMapping> VirtualHandles::In(uint64_t start, uint64_t bytes,
                                               bool* whole) const {
  std::vector<VirtualMapping> met;
  *whole = true;
  if (const VirtualMapping* const first = At(start);
      first != nullptr && first->start < start && bytes > 0) {
    *whole = false;
    met.push_back(*first);
  }
  for (auto it = mappings_.lower_bound(start);
       it != mappings_.end() && it->first - start < bytes; ++it) {
    const VirtualMapping& mapping = it->second;
    if (mapping.bytes > bytes - (mapping.start - start)) *whole = false;
    met.push_back(mapping);
  }
  return met;
}

std::vector<VirtualMapping> VirtualHandles::Of(Name name) const {
  std::vector<VirtualMapping> mappings;
  const auto handle = handles_.find(name);
  if (handle == handles_.end()) return mappings;
  for (const uint64_t start : handle->second.mappings)
    mappings.push_back(mappings_.at(start));
  return mappings;
}

std::set<CUdevice> VirtualHandles::UsersOf(Name name) const {
  std::set<CUdevice> devices;
  for (const VirtualMapping& mapping : Of(name)) {
    for (const CUmemAccessDesc& access : mapping.access) {
      if (access.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        devices.insert(access.location.id);
    }
  }
  return devices;
}

void VirtualHandles::SetAccess(uint64_t start, uint64_t bytes,
                               const CUmemAccessDesc* access, size_t count) {
  for (auto it = mappings_.lower_bound(start);
       it != mappings_.end() && it->first - start < bytes; ++it) {
    std::vector<CUmemAccessDesc>& known = it->second.access;
    for (size_t i = 0; i < count; ++i) {
      const auto same = std::find_if(
          known.begin(), known.end(), [&](const CUmemAccessDesc& one) {
            return one.location.type == access[i].location.type &&
                   one.location.id == access[i].location.id;
          });
      if (same != known.end()) {
        same->flags = access[i].flags;
      } else {
        known.push_back(access[i]);
      }
    }
  }
}

}  // namespace gmb::preload
