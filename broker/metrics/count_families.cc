// Metrics: what has happened since the start.
#include <functional>

#include "broker/metrics/families.h"

namespace gmb::broker::metrics {
namespace {

using prometheus::MetricType;
using Families = std::vector<prometheus::MetricFamily>;
using Tenants = std::map<std::string, const TenantCounts*>;

// The counts of tenants that are there.
Tenants Present(const Snapshot& snapshot) {
  Tenants present;
  for (const v1::Tenant& tenant : snapshot.tenants) {
    const auto it = snapshot.counts.tenants.find(tenant.name());
    if (it != snapshot.counts.tenants.end())
      present.emplace(it->first, &it->second);
  }
  return present;
}

struct DeviceCounter {
  const char* name;
  const char* help;
  uint64_t (*of)(const DeviceCounts& counts);
};

using Counted = const DeviceCounts&;
constexpr DeviceCounter kDeviceCounters[] = {
    {"gmb_granted_bytes_total", "Bytes of granted leases.",
     [](Counted c) { return c.granted_bytes; }},
    {"gmb_requests_queued_total", "Requests that had to wait in the queue.",
     [](Counted c) { return c.queued; }},
    {"gmb_evicted_bytes_total", "Bytes of leases that were evicted.",
     [](Counted c) { return c.evictions.bytes; }},
    {"gmb_restored_bytes_total", "Bytes of leases that were restored.",
     [](Counted c) { return c.restores.bytes; }},
};

using EachDevice = std::function<void(const std::string& tenant,
                                      const std::string& device, Counted)>;
void ForEach(const Tenants& tenants, const EachDevice& add) {
  for (const auto& [name, tenant] : tenants) {
    for (const auto& [uuid, device] : tenant->devices) add(name, uuid, device);
  }
}

void AddRequests(const Tenants& tenants, Families* families) {
  {
    FamilyBuilder family(
        families, MetricType::Counter, "gmb_requests_total",
        "Requests for memory that were answered; reason: of a refusal.");
    ForEach(tenants, [&](const auto& tenant, const auto& device, Counted c) {
      family.Add(c.granted, {{"tenant", tenant},
                             {"device_uuid", device},
                             {"outcome", "granted"}});
      for (const auto& [reason, count] : c.refused) {
        family.Add(count, {{"tenant", tenant},
                           {"device_uuid", device},
                           {"outcome", "refused"},
                           {"reason", reason}});
      }
    });
  }
  {
    FamilyBuilder waits(families, MetricType::Histogram,
                        "gmb_request_wait_seconds",
                        "From a request to its grant.");
    for (const auto& [name, tenant] : tenants) {
      if (tenant->waits.count > 0) waits.Add(tenant->waits, {{"tenant", name}});
    }
  }
  FamilyBuilder ended(
      families, MetricType::Counter, "gmb_leases_ended_total",
      "Leases that ended: released by their client, or reclaimed because its "
      "session had ended, as it does when a process dies.");
  ForEach(tenants, [&](const auto& tenant, const auto& device, Counted c) {
    for (const auto& [how, count] :
         {std::pair("released", c.released), {"reclaimed", c.reclaimed}}) {
      ended.Add(count,
                {{"tenant", tenant}, {"device_uuid", device}, {"how", how}});
    }
  });
}

void AddMoves(const Tenants& tenants, Families* families) {
  struct Kind {
    const char* name;
    const char* help;
    Moves DeviceCounts::*moves;
  };
  for (const Kind& kind :
       {Kind{"gmb_evictions_total", "Leases that were taken off the device.",
             &DeviceCounts::evictions},
        Kind{"gmb_restores_total", "Evicted leases that were brought back.",
             &DeviceCounts::restores}}) {
    FamilyBuilder family(families, MetricType::Counter, kind.name, kind.help);
    ForEach(tenants, [&](const auto& tenant, const auto& device, Counted c) {
      const Moves& moves = c.*kind.moves;
      family.Add(
          moves.done,
          {{"tenant", tenant}, {"device_uuid", device}, {"outcome", "done"}});
      family.Add(
          moves.failed,
          {{"tenant", tenant}, {"device_uuid", device}, {"outcome", "failed"}});
    });
  }
}

void AddMoveDurations(const Snapshot& snapshot, Families* families) {
  struct Kind {
    const char* name;
    const char* help;
    Durations MoveDurations::*durations;
  };
  for (const Kind& kind :
       {Kind{"gmb_eviction_seconds", "How long evictions took, with the copy.",
             &MoveDurations::evictions},
        Kind{"gmb_restore_seconds", "How long restores took, with the copy.",
             &MoveDurations::restores}}) {
    FamilyBuilder family(families, MetricType::Histogram, kind.name, kind.help);
    for (const auto& [uuid, device] : snapshot.counts.devices)
      family.Add(device.*kind.durations, {{"device_uuid", uuid}});
  }
  struct Counter {
    const char* name;
    const char* help;
    uint64_t MoveDurations::*count;
  };
  for (const Counter& counter :
       {Counter{"gmb_backed_leases_total",
                "Parked leases that were copied to the host pool ahead of "
                "need.",
                &MoveDurations::backed},
        Counter{"gmb_backed_bytes_total", "Their bytes.",
                &MoveDurations::backed_bytes},
        Counter{"gmb_create_failures_total",
                "Grants whose slabs the device could not make.",
                &MoveDurations::create_failed}}) {
    FamilyBuilder family(families, MetricType::Counter, counter.name,
                         counter.help);
    for (const auto& [uuid, device] : snapshot.counts.devices)
      family.Add(device.*counter.count, {{"device_uuid", uuid}});
  }
}

void AddSessions(const Tenants& tenants, const Counts& counts,
                 Families* families) {
  FamilyBuilder opened(families, MetricType::Counter,
                       "gmb_sessions_opened_total", "Sessions that began.");
  FamilyBuilder closed(
      families, MetricType::Counter, "gmb_sessions_closed_total",
      "Sessions that ended. A process that is done and one that was killed "
      "both disconnect: the broker cannot tell them apart.");
  FamilyBuilder overdue(
      families, MetricType::Counter, "gmb_clients_overdue_total",
      "Times that a process did not give up or map a lease in time.");
  FamilyBuilder terminated(
      families, MetricType::Counter, "gmb_clients_terminated_total",
      "Processes that the broker killed, as may_terminate allows.");
  for (const auto& [name, tenant] : tenants) {
    opened.Add(tenant->sessions_opened, {{"tenant", name}});
    for (const auto& [cause, count] : tenant->sessions_closed)
      closed.Add(count, {{"tenant", name}, {"cause", cause}});
    overdue.Add(tenant->overdue, {{"tenant", name}});
    terminated.Add(tenant->terminated, {{"tenant", name}});
  }
  FamilyBuilder refused(families, MetricType::Counter,
                        "gmb_sessions_refused_total",
                        "Processes that were refused a session.");
  for (const auto& [reason, count] : counts.sessions_refused)
    refused.Add(count, {{"reason", reason}});
}

}  // namespace

void AddCountFamilies(const Snapshot& snapshot, Families* families) {
  const Tenants tenants = Present(snapshot);
  AddRequests(tenants, families);
  for (const DeviceCounter& counter : kDeviceCounters) {
    FamilyBuilder family(families, MetricType::Counter, counter.name,
                         counter.help);
    ForEach(tenants, [&](const auto& tenant, const auto& device, Counted c) {
      family.Add(counter.of(c), {{"tenant", tenant}, {"device_uuid", device}});
    });
  }
  {
    FamilyBuilder seconds(
        families, MetricType::Counter, "gmb_tenant_resident_byte_seconds_total",
        "Leased bytes on the device, times the seconds that they were there.");
    ForEach(tenants, [&](const auto& tenant, const auto& device, Counted c) {
      seconds.Add(c.byte_seconds,
                  {{"tenant", tenant}, {"device_uuid", device}});
    });
  }
  AddMoves(tenants, families);
  AddMoveDurations(snapshot, families);
  AddSessions(tenants, snapshot.counts, families);
  {
    FamilyBuilder events(families, MetricType::Counter, "gmb_events_total",
                         "Events, by their kinds in `gmb watch`.");
    for (const auto& [kind, count] : snapshot.counts.events)
      events.Add(count, {{"kind", kind}});
  }
  FamilyBuilder(families, MetricType::Counter, "gmb_events_missed_total",
                "Events that were not counted, as too many came at once: the "
                "other counters are short of them.")
      .Add(snapshot.counts.missed);
}

}  // namespace gmb::broker::metrics
