// The broker's start: reads the YAML file.
#include "broker/config/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <functional>
#include <optional>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "broker/config/device_spec.h"
#include "broker/config/settings.h"
#include "broker/config/tenant_reader.h"
#include "broker/config/values.h"
#include "broker/config/yaml_map.h"

namespace gmb::broker {
namespace {

constexpr size_t kMostBytes = size_t{4} << 20;

// "cuda:0", or a map with "device" and what is special about it.
void ReadDevice(const YamlValue& value, ConfigErrors* errors,
                BrokerConfig* config) {
  std::optional<std::string> spec;
  DeviceConfig own;
  if (value.node.IsMap()) {
    YamlMap map(value, errors);
    spec = map.TakeText("device");
    if (!map.Take("device").has_value())
      map.AddError("device", "say which: host:4GiB, cuda:0 or a GPU's UUID");
    map.TakeInto("pool", &ParseQuotaAmount, &own.pool);
    map.TakeInto("headroom", &ParseSize, &own.headroom_bytes);
    map.TakeInto("float", &ParseSize, &own.float_bytes);
    map.Finish();
  } else {
    spec = TextOf(value, errors);
  }
  if (!spec.has_value()) return;
  absl::StatusOr<DeviceConfig> device = ParseDeviceSpec(*spec);
  if (!device.ok()) {
    errors->Add(value.node.Mark(), value.path, device.status().message());
    return;
  }
  if (device->kind == device::DeviceKind::kHost &&
      (own.pool.has_value() || own.headroom_bytes.has_value())) {
    errors->Add(
        value.node.Mark(), value.path,
        "a host device's pool is its size: leave pool and headroom out");
  }
  device->pool = own.pool;
  device->headroom_bytes = own.headroom_bytes;
  device->float_bytes = own.float_bytes;
  config->devices.push_back(*std::move(device));
}

void ReadRoot(const YAML::Node& root, const std::string& directory,
              ConfigErrors* errors, BrokerConfig* config) {
  YamlMap map(YamlValue{root, ""}, errors);
  for (const Setting& setting : Settings()) {
    if (setting.flag_only) continue;
    const std::optional<std::string> text = map.TakeText(setting.name);
    if (!text.has_value()) continue;
    config->in_file.insert(setting.name);
    config->given[setting.name] = *text;
    const absl::Status applied = setting.apply(*text, config);
    if (!applied.ok()) map.AddError(setting.name, applied.message());
  }
  if (const auto devices = map.Take("devices")) {
    config->in_file.insert("devices");
    for (const YamlValue& device : ListOf(*devices, errors))
      ReadDevice(device, errors, config);
  }
  if (const auto tenants = map.Take("tenants"))
    TenantReader(directory, errors, config).Read(*tenants);
  map.Finish();
}

// Looks where a document starts, and at nothing in it.
class DocumentStart : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& at) override { mark = at; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  YAML::Mark mark = YAML::Mark::null_mark();
};

// Where a second document begins, or what the parser could not make part of the
// first. (YAML::LoadAll would not do: it never ends on such text.)
std::optional<YAML::Mark> SecondDocument(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start))
    return std::nullopt;
  return start.mark;
}

using Read = std::function<void(const YAML::Node& root)>;

void ParseInto(const std::string& text, ConfigErrors* errors,
               const Read& read) {
  if (const std::optional<YAML::Mark> second = SecondDocument(text)) {
    errors->Add(*second, "",
                "what begins here is not part of the file's one document: "
                "check the indentation, and remove ---");
    return;
  }
  const YAML::Node root = YAML::Load(text);
  if (root.IsDefined() && !root.IsNull()) read(root);
}

absl::Status Parse(
    const std::string& text, ConfigErrors errors,
    const std::function<void(const YAML::Node&, ConfigErrors*)>& read) {
  try {
    ParseInto(text, &errors,
              [&](const YAML::Node& root) { read(root, &errors); });
  } catch (const YAML::Exception& e) {
    errors.Add(e.mark, "", absl::StrCat("not YAML: ", absl::CHexEscape(e.msg)));
  } catch (const std::exception& e) {
    errors.Add(YAML::Mark::null_mark(), "",
               absl::StrCat("not YAML: ", absl::CHexEscape(e.what())));
  }
  return errors.ToStatus();
}

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  const base::UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid())
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot open the configuration file ", path));
  std::string text;
  std::array<char, 65'536> buffer;
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return absl::ErrnoToStatus(
          errno, absl::StrCat("cannot read the configuration file ", path));
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
    if (text.size() > kMostBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a configuration file has at most 4 MiB: ", path));
    }
  }
}

}  // namespace

absl::Status ParseConfigFile(const std::string& text, const std::string& path,
                             BrokerConfig* config) {
  const size_t slash = path.rfind('/');
  const std::string directory =
      slash == std::string::npos ? "."
                                 : path.substr(0, std::max<size_t>(slash, 1));
  return Parse(text, ConfigErrors(path),
               [&](const YAML::Node& root, ConfigErrors* errors) {
                 ReadRoot(root, directory, errors, config);
               });
}

absl::Status ParseTenants(const std::string& text, const std::string& name,
                          BrokerConfig* config) {
  return Parse(text, ConfigErrors(name),
               [&](const YAML::Node& root, ConfigErrors* errors) {
                 YamlMap map(YamlValue{root, ""}, errors);
                 if (const auto tenants = map.Take("tenants")) {
                   TenantReader(TenantReader::PoliciesAlone(), errors, config)
                       .Read(*tenants);
                 }
                 map.Finish();
               });
}

absl::Status ReadConfigFile(const std::string& path, BrokerConfig* config) {
  const absl::StatusOr<std::string> text = ReadWhole(path);
  return text.ok() ? ParseConfigFile(*text, path, config) : text.status();
}

}  // namespace gmb::broker
