#ifndef GMB_BENCH_FLAG_VALUES_H_
#define GMB_BENCH_FLAG_VALUES_H_

#include <functional>
#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"

namespace gmb::bench {

// Reads the text behind a flag; false when it makes no sense.
using FlagValue = std::function<bool(const std::string& text)>;
using FlagValues = std::map<std::string, FlagValue>;

// Each writes to `value`, which outlives it.
template <typename T>
[[nodiscard]] FlagValue Number(T* value, T least) {
  return [value, least](const std::string& text) {
    return absl::SimpleAtoi(text, value) && *value >= least;
  };
}

[[nodiscard]] inline FlagValue Seconds(double* value) {
  return [value](const std::string& text) {
    return absl::SimpleAtod(text, value) && *value > 0;
  };
}

// "90s", "5m".
[[nodiscard]] inline FlagValue Time(absl::Duration* value) {
  return [value](const std::string& text) {
    return absl::ParseDuration(text, value) && *value >= absl::ZeroDuration();
  };
}

[[nodiscard]] inline FlagValue Path(std::string* value) {
  return [value](const std::string& text) {
    *value = text;
    return !text.empty();
  };
}

}  // namespace gmb::bench

#endif  // GMB_BENCH_FLAG_VALUES_H_
