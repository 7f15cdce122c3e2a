// `gmb run`: the settings in the environment.
#include "client/preload/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace gmb::preload {
namespace {

constexpr int64_t kLongestMs = 3'600'000;  // the most that a broker allows

std::string_view FromEnvironment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, as programs start
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

Settings Read() {
  Settings settings;
  if (const auto wait = ParseMilliseconds(FromEnvironment("GMB_RUN_WAIT"))) {
    settings.wait_ms = *wait;
  }
  settings.native_without_broker =
      FromEnvironment("GMB_RUN_FALLBACK") == "native";
  settings.native_vmm = FromEnvironment("GMB_RUN_VMM") == "native";
  const std::string_view verbose = FromEnvironment("GMB_RUN_VERBOSE");
  settings.verbose = !verbose.empty() && verbose != "0";
  const std::string_view park = FromEnvironment("GMB_RUN_PARK");
  if (park == "off") settings.park = Settings::Park::kOff;
  if (park == "force") settings.park = Settings::Park::kForce;
  if (const auto after =
          ParseMilliseconds(FromEnvironment("GMB_RUN_PARK_AFTER"))) {
    settings.park_after_ms = *after;
  }
  settings.group = FromEnvironment("GMB_RUN_GROUP");
  settings.tool_in_driver = !FromEnvironment("CUDA_INJECTION64_PATH").empty();
  settings.token_file = FromEnvironment("GMB_RUN_TOKEN_FILE");
  return settings;
}

constexpr size_t kLongestGroupName = 63;

}  // namespace

bool Settings::KnowsGroup() const {
  return group.size() <= kLongestGroupName &&
         std::all_of(group.begin(), group.end(),
                     [](char c) { return c >= ' ' && c <= '~'; });
}

const Settings& TheSettings() {
  static const Settings kSettings = Read();
  return kSettings;
}

std::optional<int64_t> ParseMilliseconds(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [unit_start, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number < 0) return std::nullopt;
  const std::string_view unit(unit_start,
                              static_cast<size_t>(end - unit_start));
  int64_t factor = 0;
  if (unit == "ms") factor = 1;
  if (unit == "s") factor = 1000;
  if (unit == "m") factor = 60'000;
  if (factor == 0 || number > kLongestMs / factor) return std::nullopt;
  return number * factor;
}

}  // namespace gmb::preload
