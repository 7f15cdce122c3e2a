#ifndef GMB_BROKER_CONFIG_YAML_MAP_H_
#define GMB_BROKER_CONFIG_YAML_MAP_H_

#include <yaml-cpp/yaml.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gmb::broker {

// All mistakes of a file: "gmbd.yaml:12:5: tenants[1].limit: ...".
class ConfigErrors {
 public:
  explicit ConfigErrors(std::string file) : file_(std::move(file)) {}

  void Add(const YAML::Mark& mark, absl::string_view path,
           absl::string_view message);
  [[nodiscard]] bool empty() const { return lines_.empty(); }
  [[nodiscard]] absl::Status ToStatus() const;  // one line an error

 private:
  std::string file_;
  std::vector<std::string> lines_;
};

// A value of the file with the place that errors about it name.
struct YamlValue {
  YAML::Node node;
  std::string path;  // "tenants[1].guarantee"
};

// Reads one map key by key; what nobody asked for is an unknown key.
class YamlMap {
 public:
  // A node that is no map, or has a key twice, is an error and reads as empty.
  YamlMap(const YamlValue& value, ConfigErrors* errors);

  // The value of a key, if it is there.
  std::optional<YamlValue> Take(absl::string_view key);
  // A single value as text. A list, a map or nothing at all is an error.
  std::optional<std::string> TakeText(absl::string_view key);
  // The single value as `parse` understands it, put into `field`.
  template <typename T, typename Field>
  void TakeInto(absl::string_view key,
                absl::StatusOr<T> (*parse)(absl::string_view), Field* field) {
    const std::optional<std::string> text = TakeText(key);
    if (!text.has_value()) return;
    absl::StatusOr<T> parsed = parse(*text);
    if (parsed.ok()) {
      *field = *std::move(parsed);
    } else {
      AddError(key, parsed.status().message());
    }
  }
  void AddError(absl::string_view key, absl::string_view message);

  // Every key that was never taken is an error, with the likeliest of those
  // that were. Call it last.
  void Finish();

  // The other keys, for maps whose keys are names.
  [[nodiscard]] std::vector<std::string> Keys() const;

 private:
  struct Entry {
    YAML::Node key;
    YAML::Node value;
  };
  std::string PathOf(absl::string_view key) const;

  ConfigErrors* errors_;
  YamlValue self_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::set<std::string, std::less<>> asked_for_;
};

// The elements of a list, each with its place. A node that is no list is an
// error.
[[nodiscard]] std::vector<YamlValue> ListOf(const YamlValue& value,
                                            ConfigErrors* errors);
// The text of a single value, or an error.
[[nodiscard]] std::optional<std::string> TextOf(const YamlValue& value,
                                                ConfigErrors* errors);

// The one of `known` that `word` is likely meant to be; empty: none is near.
[[nodiscard]] std::string NearestWord(
    absl::string_view word, const std::set<std::string, std::less<>>& known);

}  // namespace gmb::broker

#endif  // GMB_BROKER_CONFIG_YAML_MAP_H_
