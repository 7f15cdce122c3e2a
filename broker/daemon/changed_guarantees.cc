// A file whose guarantees do not fit: no single one is wrong, so those that
// changed are named with their lines.
#include "broker/daemon/changed_guarantees.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

using Guarantees = std::map<std::string, quota::Amount>;  // "": everywhere

Guarantees GuaranteesOf(const TenantPolicy& policy) {
  Guarantees all = {{"", policy.quota.guarantee}};
  for (const auto& [device, quota] : policy.device_quotas)
    all[device] = quota.guarantee;
  return all;
}

std::string ChangedLines(const BrokerConfig& before, const BrokerConfig& after,
                         const std::string& file) {
  constexpr size_t kMostLines = 8;
  std::map<std::string, Guarantees> former;
  for (const TenantConfig& tenant : before.tenants)
    former[tenant.policy.name] = GuaranteesOf(tenant.policy);
  std::vector<std::string> lines;
  for (const TenantConfig& tenant : after.tenants) {
    const Guarantees now = GuaranteesOf(tenant.policy);
    // One that is new and has none takes nothing from others.
    const auto was = former.find(tenant.policy.name);
    if (now == (was == former.end() ? GuaranteesOf({}) : was->second)) continue;
    lines.push_back(absl::StrCat(file, ":", tenant.line, " (tenant ",
                                 tenant.policy.name, ")"));
  }
  if (lines.size() > kMostLines) {
    const size_t more = lines.size() - kMostLines;
    lines.resize(kMostLines);
    lines.push_back(absl::StrCat(more, " more"));
  }
  return absl::StrJoin(lines, ", ");
}

}  // namespace

absl::Status NamingLines(const absl::Status& refused,
                         const BrokerConfig& before, const BrokerConfig& after,
                         const std::string& file) {
  const auto detail = proto::GetErrorDetail(refused);
  if (!detail.has_value() || detail->reason() != v1::OVERCOMMITTED)
    return refused;
  const std::string lines = ChangedLines(before, after, file);
  if (lines.empty()) return refused;
  return absl::Status(
      refused.code(),
      absl::StrCat(refused.message(), ": those that changed: ", lines));
}

}  // namespace gmb::broker
