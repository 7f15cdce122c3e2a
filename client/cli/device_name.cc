// Devices as people name them.
#include "client/cli/device_name.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "client/device_probe.h"

namespace gmb::cli {
namespace {

absl::StatusOr<std::string> UuidOfNumber(const std::string& name) {
  absl::string_view digits = name;
  size_t number = 0;
  if (!absl::ConsumePrefix(&digits, "cuda:") ||
      !absl::SimpleAtoi(digits, &number)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "write cuda:N with a number, such as cuda:0; got \"", name, "\""));
  }
  const internal::DeviceProbe probe = internal::ProbeDevices();
  if (number < probe.gpus.size()) return probe.gpus[number].uuid;
  return absl::InvalidArgumentError(absl::StrCat(
      "this process sees no GPU ", number,
      probe.problem.empty() ? "" : absl::StrCat(" (", probe.problem, ")"),
      ": name the device by its UUID, which `gmb status` shows"));
}

}  // namespace

absl::StatusOr<std::string> DeviceUuid(const std::string& name) {
  if (name == "all") return std::string();
  if (name.rfind("cuda:", 0) == 0) return UuidOfNumber(name);
  return name;
}

absl::StatusOr<std::vector<std::string>> DevicesNamed(const AdminClient& client,
                                                      const std::string& name) {
  if (name != "all") {
    GMB_ASSIGN_OR_RETURN(std::string uuid, DeviceUuid(name));
    return std::vector<std::string>{std::move(uuid)};
  }
  GMB_ASSIGN_OR_RETURN(const v1::GetStatusResponse status,
                       client.GetStatus(v1::GetStatusRequest()));
  std::vector<std::string> uuids;
  for (const v1::PoolStatus& pool : status.pools())
    uuids.push_back(pool.device().uuid());
  return uuids;
}

}  // namespace gmb::cli
