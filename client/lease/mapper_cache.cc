// Opens a device when the first lease on it arrives.
#include "client/lease/mapper_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/wire.h"
#include "device/devices.h"

namespace gmb::internal {

absl::StatusOr<std::shared_ptr<device::Mapper>> MapperCache::Get(
    const v1::Welcome& welcome, const std::string& uuid) {
  base::MutexLock lock(&mu_);
  if (const auto it = mappers_.find(uuid); it != mappers_.end())
    return it->second;
  const auto& devices = welcome.devices();
  const auto named =
      std::find_if(devices.begin(), devices.end(),
                   [&](const auto& device) { return device.uuid() == uuid; });
  if (named == devices.end()) {
    return absl::NotFoundError(
        absl::StrCat("gmb: the broker did not offer this device when the "
                     "session began; connect "
                     "again: device=",
                     uuid));
  }
  GMB_ASSIGN_OR_RETURN(device::DeviceInfo info, MappableDevice(*named));
  GMB_ASSIGN_OR_RETURN(std::unique_ptr<device::Mapper> mapper,
                       device::OpenMapper(info));
  return mappers_.emplace(uuid, std::move(mapper)).first->second;
}

std::shared_ptr<device::Mapper> MapperCache::FindOpen(
    const v1::Welcome& welcome, const std::string& uuid) {
  if (uuid.empty() && welcome.devices_size() != 1) return nullptr;
  base::MutexLock lock(&mu_);
  const auto it =
      mappers_.find(uuid.empty() ? welcome.devices(0).uuid() : uuid);
  return it == mappers_.end() ? nullptr : it->second;
}

}  // namespace gmb::internal
