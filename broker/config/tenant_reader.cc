// The broker's start: reads the file's tenants.
#include "broker/config/tenant_reader.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "broker/config/token_file.h"
#include "broker/config/values.h"
#include "broker/tenant_name.h"
#include "proto/tenant_bounds.h"

namespace gmb::broker {
namespace {

absl::StatusOr<uint32_t> ParseHandles(absl::string_view text) {
  return ParseNumber(text, 1, proto::kMostHandles);
}
absl::StatusOr<uint32_t> ParseSessions(absl::string_view text) {
  return ParseNumber(text, 1, proto::kMostSessions);
}

absl::StatusOr<quota::Nanoseconds> ParseUpToAnHour(absl::string_view text) {
  GMB_ASSIGN_OR_RETURN(const absl::Duration time,
                       ParseTime(text, absl::Hours(1)));
  return absl::ToChronoNanoseconds(time);
}

absl::StatusOr<std::string> ParseName(absl::string_view text) {
  if (IsValidTenantName(text)) return std::string(text);
  return absl::InvalidArgumentError(
      absl::StrCat(kTenantNameRule, "; got ", Shown(text)));
}

// Whether the guarantee is above the limit as far as that can be told without
// knowing the pool.
bool IsAbove(const quota::Amount& guarantee, const quota::Amount& limit) {
  if (guarantee.is_fraction() != limit.is_fraction()) return false;
  return guarantee.is_fraction() ? guarantee.fraction() > limit.fraction()
                                 : guarantee.bytes() > limit.bytes();
}

}  // namespace

void TenantReader::Read(const YamlValue& tenants) {
  for (const YamlValue& tenant : ListOf(tenants, errors_)) ReadTenant(tenant);
}

void TenantReader::ReadTenant(const YamlValue& value) {
  YamlMap map(value, errors_);
  if (!value.node.IsMap()) return;
  TenantConfig tenant;
  tenant.line = value.node.Mark().line + 1;  // YAML's count from 0
  TenantPolicy& policy = tenant.policy;
  policy.quota.limit = quota::Amount::Fraction(1);

  if (!map.Take("name").has_value())
    map.AddError("name", "every tenant has a name");
  map.TakeInto("name", &ParseName, &policy.name);
  ReadQuota(&map, &policy.quota);
  map.TakeInto("max_handles", &ParseHandles, &policy.max_handles);
  map.TakeInto("max_sessions", &ParseSessions, &policy.max_sessions);
  ReadReclaim(&map, &policy.reclaim);
  if (const auto devices = map.Take("devices"))
    ReadDeviceQuotas(*devices, &policy);
  if (const auto uids = map.Take("uids")) ReadUids(*uids, &policy);
  if (policies_alone_) RefuseOfFile(&map);
  ReadToken(&map, &tenant);
  if (const auto socket = map.Take("socket"))
    ReadSocket(*socket, &tenant.socket);
  map.Finish();
  if (!policy.name.empty() && !names_.insert(policy.name).second) {
    map.AddError("name", absl::StrCat("there is another tenant of this name: ",
                                      policy.name));
  }
  config_->tenants.push_back(std::move(tenant));
}

void TenantReader::ReadQuota(YamlMap* map, quota::TenantQuota* quota) {
  map->TakeInto("guarantee", &ParseQuotaAmount, &quota->guarantee);
  map->TakeInto("limit", &ParseQuotaAmount, &quota->limit);
  map->TakeInto("weight", &ParseWeight, &quota->weight);
  if (IsAbove(quota->guarantee, quota->limit)) {
    map->AddError(
        "guarantee",
        "the guarantee is above the limit: lower it, or raise the limit");
  }
}

void TenantReader::ReadReclaim(YamlMap* map, ReclaimPolicy* reclaim) {
  map->TakeInto("may_terminate", &ParseTruth, &reclaim->may_terminate);
  map->TakeInto("min_residency", &ParseUpToAnHour, &reclaim->min_residency);
  map->TakeInto("pause_grace", &ParseUpToAnHour, &reclaim->pause_grace);
  map->TakeInto("host_limit", &ParseQuotaAmount, &reclaim->host_limit);
}

// A value that a device leaves out is as on every device.
void TenantReader::ReadDeviceQuotas(const YamlValue& value,
                                    TenantPolicy* policy) {
  YamlMap map(value, errors_);
  for (const std::string& device : map.Keys()) {
    quota::TenantQuota quota = policy->quota;
    YamlMap overrides(*map.Take(device), errors_);
    ReadQuota(&overrides, &quota);
    overrides.Finish();
    policy->device_quotas[device] = quota;
  }
}

void TenantReader::ReadUids(const YamlValue& value, TenantPolicy* policy) {
  for (const YamlValue& element : ListOf(value, errors_)) {
    const std::optional<std::string> text = TextOf(element, errors_);
    if (!text.has_value()) continue;
    const absl::StatusOr<uid_t> uid = ParseUser(*text);
    if (!uid.ok()) {
      errors_->Add(element.node.Mark(), element.path, uid.status().message());
      continue;
    }
    const auto [other, is_new] = tenant_of_uid_.try_emplace(*uid, policy->name);
    if (is_new) {
      policy->uids.push_back(*uid);
    } else {
      errors_->Add(element.node.Mark(), element.path,
                   absl::StrCat("the uid is given twice, also to tenant ",
                                other->second));
    }
  }
}

void TenantReader::RefuseOfFile(YamlMap* map) {
  for (const char* const key : {"token_file", "socket"}) {
    if (!map->Take(key).has_value()) continue;
    map->AddError(key,
                  "this is the configuration file's alone: leave it out here");
  }
}

void TenantReader::ReadToken(YamlMap* map, TenantConfig* tenant) {
  std::optional<std::string> path = map->TakeText("token_file");
  if (!path.has_value()) return;
  if (!absl::StartsWith(*path, "/"))
    path = absl::StrCat(directory_, "/", *path);
  absl::StatusOr<TokenFile> file = ReadTokenFile(*path);
  if (!file.ok()) {
    map->AddError("token_file", file.status().message());
    return;
  }
  if (!tokens_.insert(file->token).second) {
    map->AddError(
        "token_file",
        "another tenant has the same token: every tenant needs its own");
  }
  if (!file->warning.empty()) config_->warnings.push_back(file->warning);
  tenant->policy.token = std::move(file->token);
  tenant->token_file = *std::move(path);
}

void TenantReader::ReadSocket(const YamlValue& value, SocketAccess* access) {
  YamlMap map(value, errors_);
  map.TakeInto("owner", &ParseUser, &access->owner);
  map.TakeInto("group", &ParseGroup, &access->group);
  map.TakeInto("mode", &ParseMode, &access->mode);
  map.Finish();
}

}  // namespace gmb::broker
