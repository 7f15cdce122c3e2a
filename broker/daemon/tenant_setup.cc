// The broker's start: the file's tenants, with operators' changes over them.
#include "broker/daemon/tenant_setup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "broker/declared/conflict.h"
#include "broker/declared/fields.h"
#include "broker/log/logging.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

bool Has(const std::map<std::string, std::string>& uuids,
         const std::string& uuid) {
  return std::any_of(uuids.begin(), uuids.end(),
                     [&](const auto& entry) { return entry.second == uuid; });
}

// A device that the file names and that is not here is a mistake, which the core
// refuses; one that an operator named was here once.
TenantPolicy OnKnownDevices(const std::string& name, const Subject& subject,
                            const std::map<std::string, std::string>& uuids) {
  const TenantPolicy stored = PolicyOf(name, InForce(subject));
  TenantPolicy policy = stored;
  for (const auto& [device, quota] : stored.device_quotas) {
    const bool by_file =
        ByFile(subject, absl::StrCat("devices/", device, "/limit")) != nullptr;
    if (by_file || Has(uuids, device)) continue;
    policy.device_quotas.erase(device);
    LogEvent(
        LogLevel::kWarning, "stored_quota_unused",
        {{"tenant", name},
         {"device", device},
         {"message", "an operator set a quota for a device that is not here"}});
  }
  return policy;
}

TenantPolicy WithoutGuarantee(TenantPolicy policy) {
  policy.quota.guarantee = quota::Amount();
  for (auto& [device, quota] : policy.device_quotas)
    quota.guarantee = quota::Amount();
  return policy;
}

bool IsFiles(const Written* written) {
  return written == nullptr || written->source.writer == Source::Writer::kFile;
}

// The fields whose values are not the file's.
std::vector<std::string> Overridden(const Subject& subject) {
  std::vector<std::string> fields;
  for (const auto& [field, writes] : subject.fields) {
    if (!IsFiles(InForce(subject, field))) fields.push_back(field);
  }
  return fields;
}

bool IsGuarantee(absl::string_view field) {
  return absl::EndsWith(field, "guarantee");
}

// Those that come with the file's are said, since the file is edited in vain.
void LogOverridden(const std::string& name,
                   const std::vector<std::string>& fields) {
  LogEvent(
      LogLevel::kInfo, "stored_quota_wins",
      {{"tenant", name},
       {"message",
        absl::StrCat("operators' values are put over the configuration file: ",
                     absl::StrJoin(fields, ", "))}});
}

// Said, since the tenant itself says otherwise (`gmb tenant get`).
void LeaveOutUidsOfOthers(const UidOwners& owners, const HeldUids& held,
                          TenantPolicy* policy) {
  for (const auto& [uid, owner] : owners.TakeOthers(policy)) {
    LogEvent(LogLevel::kWarning, "configuration",
             {{"tenant", policy->name},
              {"message",
               absl::StrCat(
                   "uid ", uid, " is declared by two tenants, and is ", owner,
                   "'s, which ", held.contains(uid) ? "has it" : "got it later",
                   ": take it from ", policy->name, " (`gmb tenant set ",
                   policy->name, " --uid ...`), or out of the file")}});
  }
}

StartingTenant StartingOf(const std::string& name, const Subject& before,
                          const Subject& subject,
                          const std::map<std::string, std::string>& uuids) {
  StartingTenant tenant;
  tenant.config.policy = OnKnownDevices(name, subject, uuids);
  const std::vector<std::string> fields = Overridden(subject);
  tenant.is_changed = !fields.empty();
  tenant.is_stored = std::any_of(fields.begin(), fields.end(), IsGuarantee);
  tenant.has_former_pair = HasFormerPair(before, subject);
  tenant.sources = DifferentSources(subject);
  if (subject.in_file && tenant.is_changed) LogOverridden(name, fields);
  return tenant;
}

bool IsAboveLimit(const absl::Status& refused) {
  const auto detail = proto::GetErrorDetail(refused);
  return detail.has_value() && detail->reason() == v1::BAD_REQUEST &&
         detail->field() == "guarantee";
}

}  // namespace

std::vector<StartingTenant> MergeTenants(
    const std::vector<TenantConfig>& configured, const Declared& before,
    const Declared& declared, const std::map<std::string, std::string>& uuids,
    const HeldUids& held) {
  std::map<std::string, const TenantConfig*> from_file;
  for (const TenantConfig& tenant : configured)
    from_file[tenant.policy.name] = &tenant;
  const UidOwners owners(declared, held);
  std::vector<StartingTenant> all;
  for (const auto& [name, subject] : declared.tenants) {
    if (subject.deleted) {
      LogEvent(LogLevel::kWarning, "tenant_stays_deleted",
               {{"tenant", name},
                {"message",
                 "an operator deleted it; `gmb tenant set` brings it back"}});
      continue;
    }
    const auto was = before.tenants.find(name);
    StartingTenant tenant =
        StartingOf(name, was == before.tenants.end() ? Subject() : was->second,
                   subject, uuids);
    LeaveOutUidsOfOthers(owners, held, &tenant.config.policy);
    if (const auto file = from_file.find(name); file != from_file.end()) {
      tenant.config.policy.token = file->second->policy.token;
      tenant.config.socket = file->second->socket;
    }
    all.push_back(std::move(tenant));
  }
  std::stable_partition(
      all.begin(), all.end(),
      [](const StartingTenant& tenant) { return !tenant.is_stored; });
  return all;
}

std::string DefaultTenantWarning(const std::string& default_tenant,
                                 const std::set<std::string>& tenants) {
  if (default_tenant.empty() || tenants.contains(default_tenant)) return "";
  return absl::StrCat(
      "default_tenant: there is no tenant ", default_tenant,
      ": peers that no token and no uid assigns are refused until there is "
      "one: correct the name, or make it with `gmb tenant set ",
      default_tenant, "`");
}

absl::Status AddTenants(const std::vector<StartingTenant>& tenants,
                        Core* core) {
  for (const StartingTenant& tenant : tenants) {
    const TenantPolicy& policy = tenant.config.policy;
    absl::Status set = core->SetTenant(policy).status();
    if (!set.ok() && tenant.MayGoWithout(IsAboveLimit(set))) {
      LogEvent(
          LogLevel::kError, "stored_guarantee_does_not_fit",
          {{"tenant", policy.name},
           {"message",
            "it starts without its guarantee, which is in force again "
            "when it fits; `gmb tenant set` with another one settles it at "
            "once"},
           {"reason", set.message()}});
      set = core->SetTenant(WithoutGuarantee(policy)).status();
    }
    if (!set.ok())
      return absl::Status(
          set.code(),
          absl::StrCat("tenant ", policy.name, ": ", set.message(),
                       tenant.sources.empty() ? "" : ": ", tenant.sources));
  }
  return absl::OkStatus();
}

}  // namespace gmb::broker
