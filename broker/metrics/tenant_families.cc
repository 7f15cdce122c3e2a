// Metrics: tenants' quotas and what they use.
#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "broker/metrics/families.h"

namespace gmb::broker::metrics {
namespace {

using prometheus::MetricType;
using Families = std::vector<prometheus::MetricFamily>;

struct OnDevice {
  const char* name;
  const char* help;
  uint64_t (*of)(const v1::TenantPool& pool);
};
struct OfTenant {
  const char* name;
  const char* help;
  uint64_t (*of)(const v1::Tenant& tenant);
};

using Share = const v1::TenantPool&;
constexpr OnDevice kOnDevice[] = {
    {"gmb_tenant_guarantee_bytes",
     "The guarantee in force; it may still rise to what was asked for.",
     [](Share p) { return p.view().guarantee_bytes(); }},
    {"gmb_tenant_limit_bytes", "The limit in force.",
     [](Share p) { return p.view().limit_bytes(); }},
    {"gmb_tenant_leased_bytes", "Leased, evicted leases included.",
     [](Share p) { return p.view().leased_bytes(); }},
    {"gmb_tenant_resident_bytes", "On the device, unreturned bytes included.",
     [](Share p) { return p.resident_bytes(); }},
    {"gmb_tenant_borrowed_bytes", "Resident above the guarantee.",
     [](Share p) { return p.borrowed_bytes(); }},
    {"gmb_tenant_hard_bytes", "Resident, and not to be taken by force.",
     [](Share p) { return p.hard_bytes(); }},
    {"gmb_tenant_evicted_bytes", "Leased, and not on the device.",
     [](Share p) { return p.evicted_bytes(); }},
    {"gmb_tenant_unreturned_bytes", "Released, and still held by a process.",
     [](Share p) { return p.view().unreturned_bytes(); }},
    {"gmb_tenant_obtainable_bytes",
     "The most that a request without waiting could get now.",
     [](Share p) { return p.view().obtainable_bytes(); }},
    {"gmb_tenant_over_limit_bytes",
     "Above the limit: nothing is granted until it is 0.",
     [](Share p) { return p.view().over_limit_bytes(); }},
    {"gmb_tenant_leases", "Leases.", [](Share p) { return p.leases(); }},
    {"gmb_tenant_waiting_requests",
     "Requests in the queue, or put off beside a silent keeper.",
     [](Share p) { return p.waiting(); }},
    {"gmb_tenant_waiting_bytes", "What they ask for.",
     [](Share p) { return p.waiting_bytes(); }},
};

using Tenant = const v1::Tenant&;
constexpr OfTenant kOfTenant[] = {
    {"gmb_tenant_handles", "Slabs in its leases.",
     [](Tenant t) { return t.handles(); }},
    {"gmb_tenant_handles_limit", "The most slabs in its leases.",
     [](Tenant t) { return uint64_t{t.max_handles()}; }},
    {"gmb_tenant_sessions_limit", "The most processes.",
     [](Tenant t) { return uint64_t{t.max_sessions()}; }},
    {"gmb_tenant_host_limit_bytes", "The most of the host pool.",
     [](Tenant t) { return t.host_limit_bytes(); }},
    {"gmb_tenant_host_reserved_bytes", "Of the host pool, promised to it.",
     [](Tenant t) { return t.host_reserved_bytes(); }},
    {"gmb_tenant_host_held_bytes",
     "Of the host pool, with its true contents: evicted and backed.",
     [](Tenant t) { return t.host_held_bytes(); }},
};

// "GATE_PARKED" is "parked".
std::string StateName(int gate) {
  const std::string name =
      v1::SessionInfo::Gate_Name(static_cast<v1::SessionInfo::Gate>(gate));
  return absl::AsciiStrToLower(absl::StripPrefix(name, "GATE_"));
}

// Without the states that no session is in: most tenants have few processes.
void AddSessions(const report::SessionStates& sessions, Families* families) {
  FamilyBuilder family(
      families, MetricType::Gauge, "gmb_tenant_sessions",
      "Processes by what their gates say: off (it never lends), active, "
      "parked (its memory may be taken), pausing, closed.");
  for (const auto& [id, row] : sessions.by_tenant) {
    for (size_t gate = 0; gate < row.sessions.size(); ++gate) {
      if (row.sessions[gate] == 0) continue;
      family.Add(row.sessions[gate],
                 {{"tenant", row.tenant},
                  {"state", StateName(static_cast<int>(gate))}});
    }
  }
}

}  // namespace

void AddTenantFamilies(const Snapshot& snapshot, Families* families) {
  for (const OnDevice& number : kOnDevice) {
    FamilyBuilder family(families, MetricType::Gauge, number.name, number.help);
    for (const v1::Tenant& tenant : snapshot.tenants) {
      for (const v1::TenantPool& pool : tenant.pools()) {
        family.Add(number.of(pool), {{"tenant", tenant.name()},
                                     {"device_uuid", pool.view().device()}});
      }
    }
  }
  {
    FamilyBuilder weight(families, MetricType::Gauge, "gmb_tenant_weight",
                         "The tenant's share of the surplus, beside others'.");
    for (const v1::Tenant& tenant : snapshot.tenants) {
      for (const v1::TenantPool& pool : tenant.pools()) {
        weight.Add(
            pool.view().weight(),
            {{"tenant", tenant.name()}, {"device_uuid", pool.view().device()}});
      }
    }
  }
  for (const OfTenant& number : kOfTenant) {
    FamilyBuilder family(families, MetricType::Gauge, number.name, number.help);
    for (const v1::Tenant& tenant : snapshot.tenants)
      family.Add(number.of(tenant), {{"tenant", tenant.name()}});
  }
  {
    FamilyBuilder backed(families, MetricType::Gauge, "gmb_tenant_backed_bytes",
                         "On the device, with a true copy in the host pool.");
    for (const v1::Tenant& tenant : snapshot.tenants) {
      for (const v1::TenantPool& pool : tenant.pools()) {
        const auto at =
            snapshot.backed_bytes.find({tenant.name(), pool.view().device()});
        backed.Add(
            at == snapshot.backed_bytes.end() ? 0 : at->second,
            {{"tenant", tenant.name()}, {"device_uuid", pool.view().device()}});
      }
    }
  }
  AddSessions(snapshot.sessions, families);
}

}  // namespace gmb::broker::metrics
