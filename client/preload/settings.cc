// `gmb run`: the settings in the environment.
#include "client/preload/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace gmb::preload {
namespace {

constexpr size_t kMostShown = 40;          // of a value that is not understood
constexpr int64_t kLongestMs = 3'600'000;  // the most that a broker allows

std::string_view FromEnvironment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, as programs start
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Reads variables, and notes the ones that it cannot.
class Reader {
 public:
  using ValueOf = std::function<std::string_view(const char* name)>;
  Reader(const ValueOf& value_of, Settings* settings)
      : value_of_(value_of), settings_(*settings) {}

  // Where it is not there, or says nothing known, what `known` has stays.
  void Milliseconds(const char* name, int64_t* known) {
    const std::string_view value = value_of_(name);
    if (value.empty()) return;
    const std::optional<int64_t> read = ParseMilliseconds(value);
    if (!read.has_value()) {
      return NotUnderstood(name, value,
                           "a time as 250ms, 2s or 1m, at most 1 h");
    }
    *known = *read;
  }
  // The place of its word; 0, the first, where it is not there.
  size_t Word(const char* name, std::initializer_list<std::string_view> words) {
    const std::string_view value = value_of_(name);
    const auto* const found = std::find(words.begin(), words.end(), value);
    if (found != words.end()) return static_cast<size_t>(found - words.begin());
    if (!value.empty()) {
      std::string all;
      for (const std::string_view word : words)
        all.append(all.empty() ? "" : " or ").append(word);
      NotUnderstood(name, value, all);
    }
    return 0;
  }

 private:
  void NotUnderstood(const char* name, std::string_view value,
                     std::string_view form) {
    settings_.not_understood.push_back(
        std::string(name) + "=" + std::string(value.substr(0, kMostShown)) +
        " is not understood, and left out: write " + std::string(form));
  }

  const ValueOf& value_of_;
  Settings& settings_;
};

constexpr size_t kLongestGroupName = 63;

}  // namespace

bool Settings::KnowsGroup() const {
  return group.size() <= kLongestGroupName &&
         std::all_of(group.begin(), group.end(),
                     [](char c) { return c >= ' ' && c <= '~'; });
}

Settings ReadSettings(const Reader::ValueOf& value_of) {
  Settings settings;
  Reader reader(value_of, &settings);
  reader.Milliseconds("GMB_RUN_WAIT", &settings.wait_ms);
  reader.Milliseconds("GMB_RUN_PARK_AFTER", &settings.park_after_ms);
  settings.native_without_broker =
      reader.Word("GMB_RUN_FALLBACK", {"fail", "native"}) == 1;
  settings.native_vmm = reader.Word("GMB_RUN_VMM", {"lease", "native"}) == 1;
  constexpr std::array kParks = {Settings::Park::kAuto, Settings::Park::kOff,
                                 Settings::Park::kForce};
  settings.park = kParks[reader.Word("GMB_RUN_PARK", {"auto", "off", "force"})];
  const std::string_view verbose = value_of("GMB_RUN_VERBOSE");
  settings.verbose = !verbose.empty() && verbose != "0";
  settings.group = value_of("GMB_RUN_GROUP");
  settings.tool_in_driver = !value_of("CUDA_INJECTION64_PATH").empty();
  settings.token_file = value_of("GMB_RUN_TOKEN_FILE");
  return settings;
}

const Settings& TheSettings() {
  static const Settings kSettings = ReadSettings(FromEnvironment);
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
