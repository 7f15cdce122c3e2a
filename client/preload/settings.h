#ifndef GMB_CLIENT_PRELOAD_SETTINGS_H_
#define GMB_CLIENT_PRELOAD_SETTINGS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gmb::preload {

// The settings that `gmb run` hands over in the environment; docs/frameworks.md
// lists them.
struct Settings {
  // GMB_RUN_WAIT: how long an allocation may wait for memory.
  int64_t wait_ms = 1000;
  // GMB_RUN_FALLBACK=native: without a broker the driver is asked instead.
  bool native_without_broker = false;
  // GMB_RUN_VMM=native: memory of cuMemCreate is the driver's.
  bool native_vmm = false;
  // GMB_RUN_VERBOSE=1: say on standard error why something was refused.
  bool verbose = false;
  // GMB_RUN_PARK=off: the memory is never lent; force: also by a process that
  // would not lend its memory, since not all of its use can be seen.
  enum class Park : uint8_t { kAuto, kOff, kForce };
  Park park = Park::kAuto;
  // GMB_RUN_PARK_AFTER: without a call for so long the memory may be lent.
  int64_t park_after_ms = 1000;
  // GMB_RUN_GROUP: processes that are parked together or not at all; empty:
  // none.
  std::string group;
  // Whether that is a name, or empty.
  [[nodiscard]] bool KnowsGroup() const;
  // CUDA_INJECTION64_PATH: the driver loads a tool.
  bool tool_in_driver = false;
  // GMB_RUN_TOKEN_FILE: holds the tenant's token; empty: none.
  std::string token_file;
  // For people, of each variable that says nothing known: it is as if it were
  // not there.
  std::vector<std::string> not_understood;
};

// `value_of` is the environment: an empty text for a variable that is not there.
[[nodiscard]] Settings ReadSettings(
    const std::function<std::string_view(const char* name)>& value_of);

// As the environment was when it was first asked for.
[[nodiscard]] const Settings& TheSettings();

// "250ms", "2s", "1m"; nothing for anything else.
[[nodiscard]] std::optional<int64_t> ParseMilliseconds(std::string_view text);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_SETTINGS_H_
