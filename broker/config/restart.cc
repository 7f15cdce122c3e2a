// The file was edited while the broker runs: what of it has to wait.
#include "broker/config/restart.h"

#include <array>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "broker/config/settings.h"
#include "proto/amount_text.h"

namespace gmb::broker {
namespace {

constexpr std::array<absl::string_view, 2> kLive = {"reload_may_reclaim",
                                                    "drain_deadline"};

std::string SettingText(const BrokerConfig& config, const Setting& setting) {
  const auto given = config.given.find(setting.name);
  return given == config.given.end() ? setting.default_text : given->second;
}

// A configuration of this setting alone, by which two ways to write the same
// value are equal.
BrokerConfig Alone(const BrokerConfig& config, const Setting& setting) {
  BrokerConfig alone;
  const auto given = config.given.find(setting.name);
  // It was accepted when it was read.
  if (given != config.given.end())
    setting.apply(given->second, &alone).IgnoreError();
  return alone;
}

std::string DeviceText(const DeviceConfig& device) {
  std::string text =
      device.kind == device::DeviceKind::kHost
          ? absl::StrCat("host:", proto::FormatBytes(device.host_bytes))
          : absl::StrCat(device.kind == device::DeviceKind::kIpc ? "ipc:" : "",
                         device.name);
  std::vector<std::string> own;
  if (device.pool.has_value()) {
    own.push_back(
        device.pool->is_fraction()
            ? absl::StrCat("pool ", 100 * device.pool->fraction(), "%")
            : absl::StrCat("pool ", device.pool->bytes()));
  }
  if (device.headroom_bytes.has_value())
    own.push_back(absl::StrCat("headroom ", *device.headroom_bytes));
  if (device.float_bytes.has_value())
    own.push_back(absl::StrCat("float ", *device.float_bytes));
  if (own.empty()) return text;
  return absl::StrCat(text, " (", absl::StrJoin(own, ", "), ")");
}

std::string DevicesText(const std::vector<DeviceConfig>& devices) {
  std::vector<std::string> texts;
  texts.reserve(devices.size());
  for (const DeviceConfig& device : devices)
    texts.push_back(DeviceText(device));
  return absl::StrJoin(texts, ", ");
}

}  // namespace

std::vector<std::string> NeedRestart(const BrokerConfig& running,
                                     const BrokerConfig& next) {
  std::vector<std::string> all;
  if (running.devices != next.devices) {
    all.push_back(absl::StrCat("devices ", DevicesText(running.devices), " -> ",
                               DevicesText(next.devices)));
  }
  for (const Setting& setting : Settings()) {
    if (setting.flag_only || absl::c_linear_search(kLive, setting.name) ||
        Alone(running, setting) == Alone(next, setting))
      continue;
    all.push_back(absl::StrCat(setting.name, " ", SettingText(running, setting),
                               " -> ", SettingText(next, setting)));
  }
  return all;
}

}  // namespace gmb::broker
