// Tenants, their quotas and use, for people.
#include "client/cli/views/tenant_view.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/text/text.h"
#include "client/cli/views/table.h"

namespace gmb::cli {
namespace {

using Align = Table::Align;

Table::Cell Bytes(uint64_t bytes, Tone tone = Tone::kPlain) {
  return {SizeText(bytes), bytes == 0 ? Tone::kFaint : tone};
}

// "25% = 256.00 MiB"; the share alone would not say how much it is now.
std::string Quantity(const v1::Amount& asked, uint64_t bytes) {
  if (asked.kind_case() != v1::Amount::kFraction) return SizeText(bytes);
  return absl::StrCat(AmountText(asked), " = ", SizeText(bytes));
}

std::string Waiting(const v1::TenantPool& pool) {
  if (pool.waiting() == 0) return "-";
  return absl::StrCat(pool.waiting(), " for ", SizeText(pool.waiting_bytes()));
}

Table PoolTable(std::vector<Table::Column> first) {
  std::vector<Table::Column> columns = std::move(first);
  for (const char* const title : {"guarantee", "limit", "weight", "leased",
                                  "borrowed", "obtainable", "waiting"}) {
    columns.push_back({title, Align::kRight});
  }
  columns.push_back({"source"});
  columns.push_back({"note"});
  return Table(std::move(columns));
}

// "operator uid 0, pid 4711 (gmb)" is an operator in a table.
std::string ShortSource(const v1::FieldSource& field) {
  const bool is_operator = absl::StartsWith(field.source(), "operator");
  return absl::StrCat(is_operator ? "operator" : Printable(field.source()),
                      field.has_until() ? " for a time" : "");
}

// The writer of guarantee, limit and weight on the device: "file", or, where
// that differs, "limit: operator".
std::string QuotaSource(const v1::Tenant& tenant, const std::string& device) {
  std::vector<std::string> sources;
  std::vector<std::string> all;
  for (const std::string name : {"guarantee", "limit", "weight"}) {
    const std::string own = absl::StrCat("devices/", device, "/", name);
    std::string source;
    for (const v1::FieldSource& field : tenant.fields()) {
      if (field.field() == own || (source.empty() && field.field() == name))
        source = ShortSource(field);
    }
    if (source.empty()) continue;
    sources.push_back(source);
    if (source != "file") all.push_back(absl::StrCat(name, ": ", source));
  }
  if (sources.empty()) return "-";
  const bool is_one = std::all_of(
      sources.begin(), sources.end(),
      [&](const std::string& source) { return source == sources.front(); });
  return is_one ? sources.front() : absl::StrJoin(all, ", ");
}

Table::Cell FileValue(const v1::FieldSource& field) {
  if (field.file_value().empty()) return {"-", Tone::kFaint};
  return {Printable(field.file_value())};
}

void PrintSources(const v1::Tenant& tenant, const Terminal& terminal,
                  std::ostream& out) {
  if (tenant.fields().empty()) return;
  Table table(
      {{"field"}, {"value"}, {"source"}, {"since"}, {"until"}, {"file says"}});
  for (const v1::FieldSource& field : tenant.fields()) {
    table.AddRow({Printable(field.field()), Printable(field.value()),
                  Printable(field.source()), TimeText(field.at()),
                  field.has_until() ? TimeText(field.until()) : "-",
                  FileValue(field)});
  }
  out << '\n';
  table.Print(out, terminal);
  out << "revision " << tenant.revision() << '\n';
}

std::string Notes(const v1::QuotaView& view) {
  std::vector<std::string> notes;
  if (view.over_limit_bytes() > 0) {
    notes.push_back(
        absl::StrCat(SizeText(view.over_limit_bytes()), " over its limit"));
  }
  if (view.unreturned_bytes() > 0) {
    notes.push_back(
        absl::StrCat(SizeText(view.unreturned_bytes()), " unreturned"));
  }
  return absl::StrJoin(notes, ", ");
}

void AddPoolRow(std::vector<Table::Cell> row, const v1::Tenant& tenant,
                const v1::TenantPool& pool, Table* table) {
  const v1::QuotaView& view = pool.view();
  row.push_back({Quantity(pool.quota().guarantee(), view.guarantee_bytes())});
  row.push_back({Quantity(pool.quota().limit(), view.limit_bytes())});
  row.push_back({absl::StrFormat("%g", view.weight())});
  row.push_back(Bytes(view.leased_bytes(), Tone::kAccent));
  row.push_back(Bytes(pool.borrowed_bytes()));
  row.push_back(Bytes(view.obtainable_bytes()));
  row.push_back(
      {Waiting(pool), pool.waiting() > 0 ? Tone::kWarning : Tone::kFaint});
  row.push_back({QuotaSource(tenant, view.device())});
  row.push_back({Notes(view), Tone::kWarning});
  table->AddRow(std::move(row));
}

Table PlaceTable(std::vector<Table::Column> first) {
  std::vector<Table::Column> columns = std::move(first);
  for (const char* const title : {"resident", "hard", "evicted"})
    columns.push_back({title, Align::kRight});
  return Table(std::move(columns));
}

// Where the bytes are that it has leased.
void AddPlaceRow(std::vector<Table::Cell> row, const v1::TenantPool& pool,
                 Table* table) {
  row.push_back(Bytes(pool.resident_bytes()));
  row.push_back(Bytes(pool.hard_bytes()));
  row.push_back(Bytes(pool.evicted_bytes()));
  table->AddRow(std::move(row));
}

std::string YesNo(bool yes) { return yes ? "yes" : "no"; }

void AddReclaimRow(const v1::Tenant& tenant, Table* table) {
  table->AddRow({tenant.name(), Bytes(tenant.host_limit_bytes()),
                 Bytes(tenant.host_reserved_bytes()),
                 Bytes(tenant.host_held_bytes()),
                 DurationText(ToDuration(tenant.min_residency())),
                 DurationText(ToDuration(tenant.pause_grace())),
                 YesNo(tenant.may_terminate())});
}

// The steps that may be taken with the tenant's memory when others need it.
void PrintReclaimPolicy(const v1::Tenant& tenant, std::ostream& out) {
  out << "reclaim: its leases stay "
      << DurationText(ToDuration(tenant.min_residency()))
      << " at least, a pause waits "
      << DurationText(ToDuration(tenant.pause_grace())) << ", its processes may"
      << (tenant.may_terminate() ? "" : " not") << " be terminated\n"
      << "host pool: limit " << SizeText(tenant.host_limit_bytes())
      << ", reserved " << SizeText(tenant.host_reserved_bytes()) << ", held "
      << SizeText(tenant.host_held_bytes()) << '\n';
}

}  // namespace

void PrintTenants(const v1::ListTenantsResponse& tenants,
                  const Terminal& terminal, std::ostream& out) {
  if (tenants.tenants().empty()) {
    out << "no tenants; `gmb tenant set NAME --guarantee 25% --limit 50%` "
           "makes one\n";
    return;
  }
  Table quotas = PoolTable({{"tenant"}, {"device"}});
  Table places = PlaceTable({{"tenant"}, {"device"}});
  Table reclaim({{"tenant"},
                 {"host limit", Align::kRight},
                 {"reserved", Align::kRight},
                 {"held", Align::kRight},
                 {"min residency", Align::kRight},
                 {"pause grace", Align::kRight},
                 {"may terminate"}});
  for (const v1::Tenant& tenant : tenants.tenants()) {
    for (const v1::TenantPool& pool : tenant.pools()) {
      AddPoolRow({tenant.name(), pool.view().device()}, tenant, pool, &quotas);
      AddPlaceRow({tenant.name(), pool.view().device()}, pool, &places);
    }
    AddReclaimRow(tenant, &reclaim);
  }
  quotas.Print(out, terminal);
  out << '\n';
  places.Print(out, terminal);
  out << '\n';
  reclaim.Print(out, terminal);
}

void PrintTenant(const v1::Tenant& tenant, const Terminal& terminal,
                 std::ostream& out) {
  out << terminal.Paint(Tone::kStrong, Printable(tenant.name())) << ": "
      << tenant.sessions() << " of "
      << CountText(tenant.max_sessions(), "session") << ", " << tenant.handles()
      << " of " << CountText(tenant.max_handles(), "handle") << '\n';
  std::vector<std::string> ways;
  if (!tenant.socket_dir().empty())
    ways.push_back(absl::StrCat("sockets in ", tenant.socket_dir()));
  if (!tenant.uids().empty())
    ways.push_back(absl::StrCat("uid ", absl::StrJoin(tenant.uids(), ", ")));
  if (tenant.has_token()) ways.emplace_back("a token");
  if (!ways.empty())
    out << "known by: " << Printable(absl::StrJoin(ways, "; ")) << '\n';
  PrintReclaimPolicy(tenant, out);
  Table quotas = PoolTable({{"device"}});
  Table places = PlaceTable({{"device"}});
  for (const v1::TenantPool& pool : tenant.pools()) {
    AddPoolRow({pool.view().device()}, tenant, pool, &quotas);
    AddPlaceRow({pool.view().device()}, pool, &places);
  }
  quotas.Print(out, terminal);
  out << '\n';
  places.Print(out, terminal);
  PrintSources(tenant, terminal, out);
}

void PrintChange(const v1::Change& change, const Terminal& terminal,
                 std::ostream& out) {
  out << Printable(change.device()) << ": ";
  if (change.state() == v1::Change::PENDING) {
    out << terminal.Paint(Tone::kWarning, "pending") << ", "
        << SizeText(change.remaining_bytes())
        << " still to come as memory is released; new requests follow it at "
           "once\n";
  } else {
    out << terminal.Paint(Tone::kGood, "applied") << '\n';
  }
}

namespace {

std::string WaitsForText(v1::WaitingAttach::For waits_for) {
  switch (waits_for) {
    case v1::WaitingAttach::MEMORY:
      return "its writer's memory";
    case v1::WaitingAttach::SEAL:
      return "its writer to seal it";
    case v1::WaitingAttach::RETURN:
      return "its return to the device";
    default:
      return "-";
  }
}

// Sessions that wait to attach to shared leases.
Table AttachTable(const v1::ExplainResponse& explanation) {
  Table table({{"attaching session", Align::kRight},
               {"to"},
               {"waited", Align::kRight},
               {"gives up in", Align::kRight},
               {"waits for"},
               {"of session", Align::kRight}});
  for (const v1::WaitingAttach& attach : explanation.attaching()) {
    const uint64_t on = attach.on_session_id();
    table.AddRow({absl::StrCat(attach.session_id()),
                  Printable(attach.share_name()),
                  DurationText(ToDuration(attach.waited())),
                  DurationText(ToDuration(attach.remaining())),
                  {WaitsForText(attach.waits_for()), Tone::kWarning},
                  on == 0 ? "-" : absl::StrCat(on)});
  }
  return table;
}

}  // namespace

void PrintExplanation(const v1::ExplainResponse& explanation,
                      const Terminal& terminal, std::ostream& out) {
  PrintTenant(explanation.tenant(), terminal, out);
  out << '\n';
  if (explanation.waiting().empty() && explanation.attaching().empty()) {
    out << "It waits for nothing.\n";
  }
  if (!explanation.waiting().empty()) {
    Table table({{"waiting session", Align::kRight},
                 {"device"},
                 {"bytes", Align::kRight},
                 {"waited", Align::kRight},
                 {"gives up in", Align::kRight},
                 {"blocked by"},
                 {"short of", Align::kRight}});
    for (const v1::WaitingRequest& request : explanation.waiting()) {
      table.AddRow(
          {absl::StrCat(request.session_id()),
           request.device(),
           Bytes(request.bytes()),
           DurationText(ToDuration(request.waited())),
           DurationText(ToDuration(request.remaining())),
           {request.has_asked_again_in() ? "silent keeper"
                                         : ReasonText(request.blocked_by()),
            Tone::kWarning},
           Bytes(request.deficit_bytes())});
    }
    table.Print(out, terminal);
  }
  if (!explanation.attaching().empty())
    AttachTable(explanation).Print(out, terminal);
  for (const std::string& finding : explanation.findings())
    out << "- " << Printable(finding) << '\n';
}

}  // namespace gmb::cli
