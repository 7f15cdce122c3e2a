// Operators ask who wrote a tenant's fields, and name fields themselves.
#include "broker/server/field_sources.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

bool IsQuota(absl::string_view field) {
  return field == "guarantee" || field == "limit" || field == "weight";
}

// A list of very many uids is cut.
std::string ValueText(absl::string_view field, const std::string& value) {
  constexpr size_t kMostCharacters = 64;
  const std::string text = InWords(field, value);
  return text.size() <= kMostCharacters
             ? text
             : absl::StrCat(text.substr(0, kMostCharacters), "...");
}

// A field of every device is also that of each device that has its own.
void Add(const std::string& name, const std::string& device,
         const Subject& subject, std::set<std::string>* fields) {
  if (!IsQuota(name)) {
    fields->insert(name);
  } else if (!device.empty()) {
    fields->insert(absl::StrCat("devices/", device, "/", name));
  } else {
    fields->insert(name);
    for (const auto& [field, writes] : subject.fields) {
      if (absl::StartsWith(field, "devices/") &&
          absl::EndsWith(field, absl::StrCat("/", name)))
        fields->insert(field);
    }
  }
}

}  // namespace

void AddSources(const Declared& declared, v1::Tenant* tenant) {
  tenant->set_revision(declared.next_order);
  const auto found = declared.tenants.find(tenant->name());
  if (found == declared.tenants.end()) return;
  for (const auto& [field, writes] : found->second.fields) {
    const Written* const last = InForce(found->second, field);
    if (last == nullptr) continue;
    v1::FieldSource* const source = tenant->add_fields();
    source->set_field(field);
    source->set_value(ValueText(field, last->value));
    source->set_source(ToText(last->source));
    *source->mutable_at() = ToProto(last->at);
    if (last->until.has_value())
      *source->mutable_until() = ToProto(*last->until);
    const Written* const by_file = ByFile(found->second, field);
    if (by_file != nullptr && by_file != last)
      source->set_file_value(ValueText(field, by_file->value));
  }
}

std::set<std::string> FieldsNamed(const v1::SetTenantRequest& request,
                                  const std::string& device,
                                  const Subject& subject) {
  std::vector<std::string> names;
  if (request.has_guarantee()) names.emplace_back("guarantee");
  if (request.has_limit()) names.emplace_back("limit");
  if (request.has_weight()) names.emplace_back("weight");
  if (request.has_max_handles()) names.emplace_back("max_handles");
  if (request.has_max_sessions()) names.emplace_back("max_sessions");
  if (request.has_uids()) names.emplace_back("uids");
  if (request.has_may_terminate()) names.emplace_back("may_terminate");
  if (request.has_min_residency()) names.emplace_back("min_residency");
  if (request.has_pause_grace()) names.emplace_back("pause_grace");
  if (request.has_host_limit()) names.emplace_back("host_limit");
  std::set<std::string> fields;
  for (const std::string& name : names) Add(name, device, subject, &fields);
  return fields;
}

absl::StatusOr<std::set<std::string>> FieldsNamed(
    const v1::ResetTenantRequest& request, const std::string& device,
    const Subject& subject) {
  std::set<std::string> fields;
  for (const std::string& name : request.fields()) {
    if (!DefaultOf(name).has_value()) {
      return proto::MakeError(
          v1::BAD_REQUEST,
          "a field is one of guarantee, limit, weight, max_handles, "
          "max_sessions, may_terminate, min_residency, pause_grace, "
          "host_limit, uids",
          {.field = "fields"});
    }
    Add(name, device, subject, &fields);
  }
  if (!request.fields().empty()) return fields;
  const std::string of_device = absl::StrCat("devices/", device, "/");
  for (const auto& [field, writes] : subject.fields) {
    if (device.empty() || absl::StartsWith(field, of_device))
      fields.insert(field);
  }
  return fields;
}

}  // namespace gmb::broker
