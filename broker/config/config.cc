// The broker's start: defaults, file and flags become one configuration.
#include "broker/config/config.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/config/config_file.h"
#include "broker/config/device_spec.h"
#include "broker/config/settings.h"
#include "broker/config/token_file.h"
#include "broker/config/values.h"
#include "ipc/socket_path.h"
#include "proto/amount_text.h"

namespace gmb::broker {
namespace {

using Errors = std::vector<std::string>;

void ApplyFlags(const Flags& flags, BrokerConfig* config, Errors* errors) {
  for (const Setting& setting : Settings()) {
    const auto given = flags.settings.find(setting.name);
    if (given == flags.settings.end()) continue;
    config->given[setting.name] = given->second;
    const absl::Status applied = setting.apply(given->second, config);
    if (!applied.ok())
      errors->push_back(absl::StrCat(setting.Flag(), ": ", applied.message()));
  }
}

// False when one of them is wrong: what is left says nothing about what was
// meant.
bool ApplyDevices(const Flags& flags, BrokerConfig* config, Errors* errors) {
  if (!flags.devices.empty()) config->devices.clear();
  bool all_ok = true;
  for (const std::string& spec : flags.devices) {
    absl::StatusOr<DeviceConfig> device = ParseDeviceSpec(spec);
    if (device.ok()) {
      config->devices.push_back(*std::move(device));
    } else {
      all_ok = false;
      errors->push_back(absl::StrCat("--device: ", device.status().message()));
    }
  }
  return all_ok;
}

// Tells an operator who changes the file why nothing comes of it.
void WarnOfOverrides(const Flags& flags, BrokerConfig* config) {
  const auto warn = [config](absl::string_view flag, absl::string_view name) {
    config->warnings.push_back(
        absl::StrCat(flag, " on the command line wins over ", name,
                     " in the file: leave one of them out"));
  };
  for (const Setting& setting : Settings()) {
    if (flags.settings.contains(setting.name) &&
        config->in_file.contains(setting.name))
      warn(setting.Flag(), setting.name);
  }
  if (!flags.devices.empty() && config->in_file.contains("devices"))
    warn("--device", "devices");
}

// It is used as it comes, so it would be missed only when much is leased.
void WarnOfLargeHostDevices(BrokerConfig* config) {
  uint64_t wanted = config->host_pool_bytes.value_or(0);
  for (const DeviceConfig& device : config->devices)
    wanted += device.host_bytes;
  const uint64_t memory = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                          static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (wanted <= memory) return;
  config->warnings.push_back(absl::StrCat(
      "the host devices and the host pool are ", proto::FormatBytes(wanted),
      ", and this machine has ", proto::FormatBytes(memory),
      " of memory: when more is leased than there is, processes are killed"));
}

void CheckThatDevicesAreGiven(const BrokerConfig& config, Errors* errors) {
  if (config.devices.empty()) {
    errors->emplace_back(
        "no device: give --device host:4GiB, --device cuda:0, or devices in "
        "the file");
  }
}

void CheckDevices(BrokerConfig* config, Errors* errors) {
  const absl::Status named = NameDevices(&config->devices);
  if (!named.ok())
    errors->push_back(absl::StrCat("devices: ", named.message()));
  const bool ipc = std::any_of(config->devices.begin(), config->devices.end(),
                               [](const DeviceConfig& device) {
                                 return device.kind == device::DeviceKind::kIpc;
                               });
  if (ipc && !config->allow_ipc) {
    errors->emplace_back(
        "devices: legacy IPC lets every client of the device reach every "
        "other's memory: for trusted processes "
        "of one user, say --allow-ipc; otherwise leave ipc: out");
  }
}

// Of GPUs alone. To be told so beats to wonder why a pool has the wrong size.
void WarnOfIdleSettings(BrokerConfig* config) {
  const BrokerConfig defaults;
  const bool set = config->pool != defaults.pool ||
                   config->headroom_bytes != defaults.headroom_bytes;
  const bool all_host =
      std::all_of(config->devices.begin(), config->devices.end(),
                  [](const DeviceConfig& device) {
                    return device.kind == device::DeviceKind::kHost;
                  });
  if (set && all_host) {
    config->warnings.emplace_back(
        "pool and headroom are for GPUs and have no effect here: a host "
        "device's pool is its size");
  }
}

void WarnOfIdleHostLimits(BrokerConfig* config) {
  if (config->host_pool_bytes != uint64_t{0}) return;
  for (const TenantConfig& tenant : config->tenants) {
    const ReclaimPolicy& reclaim = tenant.policy.reclaim;
    if (reclaim.host_limit == ReclaimPolicy().host_limit) continue;
    config->warnings.push_back(
        absl::StrCat("tenant ", tenant.policy.name,
                     ": host_limit has no effect, as host_pool is 0: set it"));
  }
}

// A GPU given by its number cannot be told from one given by its UUID before it
// is opened; names of the other forms can be wrong here already.
void CheckDeviceQuotas(const BrokerConfig& config, Errors* errors) {
  for (const TenantConfig& tenant : config.tenants) {
    for (const auto& [device, quota] : tenant.policy.device_quotas) {
      const bool known = std::any_of(
          config.devices.begin(), config.devices.end(),
          [&name = device](const DeviceConfig& d) { return d.name == name; });
      if (known || absl::StartsWith(device, "GPU-") ||
          absl::StartsWith(device, "MIG-"))
        continue;
      errors->push_back(absl::StrCat(
          "tenant ", tenant.policy.name, ": devices: the broker has no device ",
          Shown(device), ": it is named as in devices, host memory host-0"));
    }
  }
}

void CheckSocketPaths(const BrokerConfig& config, Errors* errors) {
  absl::Status fits = ipc::CheckSocketPath(
      absl::StrCat(config.socket_dir, "/admin/handle.sock"));
  for (const TenantConfig& tenant : config.tenants) {
    if (!fits.ok()) break;
    fits = ipc::CheckSocketPath(absl::StrCat(
        config.socket_dir, "/tenants/", tenant.policy.name, "/handle.sock"));
  }
  if (!fits.ok())
    errors->push_back(absl::StrCat("socket_dir: ", fits.message()));
}

void CheckKeeper(BrokerConfig* config, Errors* errors) {
  if (config->keeper_socket.empty()) {
    if (config->detach_on_stop) {
      errors->emplace_back(
          "on_stop: detach leaves sessions to the keeper: set keeper, or write "
          "drain");
    }
    return;
  }
  if (absl::c_any_of(config->devices, [](const DeviceConfig& device) {
        return device.kind == device::DeviceKind::kIpc;
      })) {
    config->warnings.emplace_back(
        "leases of ipc: devices end with the broker: the keeper cannot have "
        "their memory");
  }
}

// Nothing that strangers of a network could read is served to them.
void ReadHttpToken(BrokerConfig* config, Errors* errors) {
  if (!config->http.has_value()) return;
  if (config->http_token_file.empty()) {
    if (config->http->IsLocal()) return;
    errors->push_back(absl::StrCat(
        "http: everybody who can reach ", config->http->Text(),
        " could read the metrics: set http_token_file, or listen at "
        "127.0.0.1 or a unix: socket"));
    return;
  }
  absl::StatusOr<TokenFile> file = ReadTokenFile(config->http_token_file);
  if (!file.ok()) {
    errors->push_back(
        absl::StrCat("http_token_file: ", file.status().message()));
    return;
  }
  config->http_token = std::move(file->token);
  if (!file->warning.empty()) config->warnings.push_back(file->warning);
}

}  // namespace

absl::StatusOr<BrokerConfig> LoadConfig(const Flags& flags) {
  BrokerConfig config;
  Errors errors;
  if (!flags.config_file.empty()) {
    const absl::Status read = ReadConfigFile(flags.config_file, &config);
    if (!read.ok()) errors.emplace_back(read.message());
  }
  const bool file_ok = errors.empty();
  ApplyFlags(flags, &config, &errors);
  const bool devices_ok = ApplyDevices(flags, &config, &errors);
  // With a broken file, or a broken device, these would only repeat its
  // mistakes in other words.
  if (file_ok && devices_ok) CheckThatDevicesAreGiven(config, &errors);
  if (file_ok) {
    CheckDevices(&config, &errors);  // names them
    if (devices_ok) CheckDeviceQuotas(config, &errors);
    CheckSocketPaths(config, &errors);
    ReadHttpToken(&config, &errors);
    CheckKeeper(&config, &errors);
    WarnOfIdleSettings(&config);
    WarnOfIdleHostLimits(&config);
    WarnOfOverrides(flags, &config);
    WarnOfLargeHostDevices(&config);
  }
  if (!errors.empty())
    return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  return config;
}

}  // namespace gmb::broker
