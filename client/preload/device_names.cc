// `gmb run`: devices by the names that the broker knows.
#include "client/preload/device_names.h"

#include <array>
#include <cstddef>

namespace gmb::preload {
namespace {

// As the broker writes it: "GPU-8f5c...".
std::string UuidText(const CUuuid& uuid) {
  constexpr std::array kHex = {'0', '1', '2', '3', '4', '5', '6', '7',
                               '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += kHex[byte >> 4U];
    text += kHex[byte & 15U];
  }
  return text;
}

}  // namespace

const std::string& DeviceNames::UuidOf(CUdevice device) {
  CUuuid uuid{};
  {
    const base::MutexLock lock(&mu_);
    if (const auto known = uuids_.find(device); known != uuids_.end()) {
      return known->second;
    }
  }
  if (driver_.cuDeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS) {
    static const std::string& none = *new std::string;
    return none;
  }
  const base::MutexLock lock(&mu_);
  return uuids_.emplace(device, UuidText(uuid)).first->second;
}

}  // namespace gmb::preload
