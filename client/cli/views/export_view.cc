// The values in force, as a configuration file.
#include "client/cli/views/export_view.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace gmb::cli {
namespace {

// By name. They are in the file where they differ.
const std::map<std::string, std::string>& OfANewTenant() {
  static const auto* const kValues = new std::map<std::string, std::string>{
      {"guarantee", "0"},      {"limit", "100%"},
      {"weight", "1"},         {"max_handles", "4096"},
      {"max_sessions", "64"},  {"may_terminate", "false"},
      {"min_residency", "0s"}, {"pause_grace", "5s"},
      {"host_limit", "100%"},  {"uids", "none"},
  };
  return *kValues;
}

using Values = std::map<std::string, std::string>;

// "devices/GPU-1/limit" is the field "limit" of GPU-1.
bool IsOfADevice(absl::string_view field, std::string* device,
                 std::string* name) {
  if (!absl::ConsumePrefix(&field, "devices/")) return false;
  const size_t slash = field.rfind('/');
  if (slash == absl::string_view::npos) return false;
  *device = std::string(field.substr(0, slash));
  *name = std::string(field.substr(slash + 1));
  return true;
}

bool IsHere(const std::string& device, const v1::Tenant& tenant) {
  return std::any_of(tenant.pools().begin(), tenant.pools().end(),
                     [&](const v1::TenantPool& pool) {
                       return pool.view().device() == device;
                     });
}

std::string TenantText(const v1::Tenant& tenant) {
  std::string text = absl::StrCat("- name: \"", tenant.name(), "\"\n");
  std::map<std::string, Values> devices;
  for (const v1::FieldSource& field : tenant.fields()) {
    std::string device;
    std::string name;
    if (IsOfADevice(field.field(), &device, &name)) {
      // A value that an operator set for one that is not here has no effect.
      if (IsHere(device, tenant)) devices[device][name] = field.value();
      continue;
    }
    const auto usual = OfANewTenant().find(field.field());
    if (field.field() == "uids" ||
        (usual != OfANewTenant().end() && usual->second == field.value()))
      continue;
    absl::StrAppend(&text, "  ", field.field(), ": ", field.value(), "\n");
  }
  if (!tenant.uids().empty()) {
    absl::StrAppend(&text, "  uids: [", absl::StrJoin(tenant.uids(), ", "),
                    "]\n");
  }
  if (!devices.empty()) text += "  devices:\n";
  for (const auto& [device, values] : devices) {
    absl::StrAppend(&text, "    \"", device, "\": {",
                    absl::StrJoin(values, ", ", absl::PairFormatter(": ")),
                    "}\n");
  }
  if (tenant.has_token())
    text += "  # It has a token, which is secret: token_file names its file.\n";
  return text;
}

}  // namespace

std::string ExportText(const v1::ListTenantsResponse& tenants) {
  std::string text =
      "# The tenants as they are in force. Devices, pools and the settings of "
      "the broker\n# are not in here, nor are tokens and who may enter a "
      "tenant's directory.\n";
  if (tenants.tenants().empty()) return text + "tenants: []\n";
  text += "tenants:\n";
  for (const v1::Tenant& tenant : tenants.tenants()) text += TenantText(tenant);
  return text;
}

}  // namespace gmb::cli
