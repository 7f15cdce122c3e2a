// `gmb top`: what was seen as rows, with what changed since the last look.
#include "client/cli/top/rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "client/cli/text/text.h"

namespace gmb::cli::top {
namespace {

double SecondsBetween(const Sight& sight) {
  return absl::ToDoubleSeconds(sight.look->at - sight.before->at);
}

Rate RateOf(uint64_t now, uint64_t before, double seconds) {
  if (seconds <= 0) return std::nullopt;
  return (static_cast<double>(now) - static_cast<double>(before)) / seconds;
}

// Of the tenant (empty: all) on the device (empty: all).
Moved SumOf(const MovedByPool& moved, const std::string& tenant,
            const std::string& device) {
  Moved sum;
  for (auto it = moved.lower_bound({tenant, ""}); it != moved.end(); ++it) {
    if (!tenant.empty() && it->first.first != tenant) break;
    if (!device.empty() && it->first.second != device) continue;
    sum.evicted_bytes += it->second.evicted_bytes;
    sum.restored_bytes += it->second.restored_bytes;
  }
  return sum;
}

uint64_t ResidentOf(const v1::Tenant& tenant, const std::string& device) {
  uint64_t bytes = 0;
  for (const v1::TenantPool& pool : tenant.pools()) {
    if (device.empty() || pool.view().device() == device)
      bytes += pool.resident_bytes();
  }
  return bytes;
}

uint64_t ResidentOf(const v1::SessionInfo& session) {
  return session.leased_bytes() -
         std::min(session.leased_bytes(), session.evicted_bytes());
}

void Add(const v1::TenantPool& pool, TenantRow* row) {
  const v1::QuotaView& view = pool.view();
  v1::QuotaView& sum = row->view;
  sum.set_guarantee_bytes(sum.guarantee_bytes() + view.guarantee_bytes());
  sum.set_limit_bytes(sum.limit_bytes() + view.limit_bytes());
  sum.set_leased_bytes(sum.leased_bytes() + view.leased_bytes());
  sum.set_evicted_bytes(sum.evicted_bytes() + pool.evicted_bytes());
  sum.set_pool_bytes(sum.pool_bytes() + view.pool_bytes());
  sum.set_over_limit_bytes(sum.over_limit_bytes() + view.over_limit_bytes());
  sum.set_unreturned_bytes(sum.unreturned_bytes() + view.unreturned_bytes());
  sum.set_obtainable_bytes(sum.obtainable_bytes() + view.obtainable_bytes());
  row->resident_bytes += pool.resident_bytes();
  row->borrowed_bytes += pool.borrowed_bytes();
  row->hard_bytes += pool.hard_bytes();
  row->waiting += pool.waiting();
  row->waiting_bytes += pool.waiting_bytes();
}

bool IsParked(v1::SessionInfo::Gate gate) {
  return gate == v1::SessionInfo::GATE_PARKED ||
         gate == v1::SessionInfo::GATE_CLOSED;
}

void Count(v1::SessionInfo::Gate gate, Rows* rows) {
  switch (gate) {
    case v1::SessionInfo::GATE_ACTIVE:
      ++rows->active;
      break;
    case v1::SessionInfo::GATE_PARKED:
      ++rows->parked;
      break;
    case v1::SessionInfo::GATE_PAUSING:
      ++rows->pausing;
      break;
    case v1::SessionInfo::GATE_CLOSED:
      ++rows->closed;
      break;
    default:
      ++rows->gates_off;
  }
}

std::vector<TenantRow> TenantRows(const Sight& sight, const Choice& choice) {
  std::unordered_map<std::string, const v1::Tenant*> former;
  if (sight.before != nullptr) {
    for (const v1::Tenant& tenant : sight.before->tenants.tenants())
      former[tenant.name()] = &tenant;
  }
  std::vector<TenantRow> rows;
  for (const v1::Tenant& tenant : sight.look->tenants.tenants()) {
    if (!absl::StrContains(tenant.name(), choice.tenant_part)) continue;
    TenantRow row;
    row.name = tenant.name();
    row.sessions = tenant.sessions();
    for (const v1::TenantPool& pool : tenant.pools()) {
      if (choice.device.empty() || pool.view().device() == choice.device)
        Add(pool, &row);
    }
    if (const auto before = former.find(tenant.name());
        before != former.end()) {
      const double seconds = SecondsBetween(sight);
      row.change = RateOf(row.resident_bytes,
                          ResidentOf(*before->second, choice.device), seconds);
      const Moved now = SumOf(sight.look->moved, row.name, choice.device);
      const Moved then = SumOf(sight.before->moved, row.name, choice.device);
      row.evicted = RateOf(now.evicted_bytes, then.evicted_bytes, seconds);
      row.restored = RateOf(now.restored_bytes, then.restored_bytes, seconds);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<SessionRow> SessionRows(const Sight& sight, const Choice& choice) {
  std::unordered_map<uint64_t, uint64_t> former;
  if (sight.before != nullptr) {
    for (const v1::SessionInfo& session : sight.before->sessions.sessions())
      former[session.id()] = ResidentOf(session);
  }
  std::vector<SessionRow> rows;
  for (const v1::SessionInfo& session : sight.look->sessions.sessions()) {
    if (!absl::StrContains(session.tenant(), choice.tenant_part)) continue;
    SessionRow row{.info = session,
                   .resident_bytes = ResidentOf(session),
                   .change = std::nullopt};
    if (const auto before = former.find(session.id()); before != former.end()) {
      row.change =
          RateOf(row.resident_bytes, before->second, SecondsBetween(sight));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Counts each tenant's processes by what they do.
void AddStates(const v1::ListSessionsResponse& sessions, Rows* rows) {
  std::unordered_map<std::string, TenantRow*> tenants;
  for (TenantRow& row : rows->tenants) tenants[row.name] = &row;
  for (const v1::SessionInfo& session : sessions.sessions()) {
    Count(session.gate(), rows);
    const auto found = tenants.find(session.tenant());
    if (found == tenants.end()) continue;
    TenantRow& row = *found->second;
    if (!IsParked(session.gate())) {
      ++row.active;
      continue;
    }
    const absl::Duration idle = ToDuration(session.idle());
    row.idle = row.parked == 0 ? idle : std::min(row.idle, idle);
    ++row.parked;
  }
  for (TenantRow& row : rows->tenants) {
    if (row.active > 0) row.idle = absl::ZeroDuration();
  }
}

// More is less, so that it comes first; of names a is.
using Place = std::tuple<double, std::string, uint64_t>;

Place PlaceOf(const TenantRow& row, Sort sort) {
  const auto at = [&](double most) {
    return Place(-most, row.name, uint64_t{0});
  };
  switch (sort) {
    case Sort::kBytes:
      return at(static_cast<double>(row.resident_bytes));
    case Sort::kChange:
      return at(std::abs(row.change.value_or(0)));
    case Sort::kEvicted:
      return at(static_cast<double>(row.view.evicted_bytes()));
    case Sort::kWaiting:
      return at(static_cast<double>(row.waiting_bytes));
    case Sort::kIdle:
      return at(absl::ToDoubleSeconds(row.idle));
    case Sort::kName:
      break;
  }
  return at(0);
}

Place PlaceOf(const SessionRow& row, Sort sort) {
  const auto at = [&](double most, const std::string& name = "") {
    return Place(-most, name, row.info.id());
  };
  switch (sort) {
    case Sort::kBytes:
      return at(static_cast<double>(row.resident_bytes));
    case Sort::kChange:
      return at(std::abs(row.change.value_or(0)));
    case Sort::kEvicted:
      return at(static_cast<double>(row.info.evicted_bytes()));
    case Sort::kWaiting:
      return at(static_cast<double>(row.info.waiting()));
    case Sort::kIdle:
      return at(absl::ToDoubleSeconds(ToDuration(row.info.idle())));
    case Sort::kName:
      break;
  }
  return at(0, row.info.tenant());
}

template <typename Row>
void Order(const Choice& choice, std::vector<Row>* rows) {
  std::vector<std::pair<Place, Row>> placed;
  placed.reserve(rows->size());
  for (Row& row : *rows)
    placed.emplace_back(PlaceOf(row, choice.sort), std::move(row));
  std::sort(placed.begin(), placed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  if (choice.reversed) std::reverse(placed.begin(), placed.end());
  rows->clear();
  for (auto& [place, row] : placed) rows->push_back(std::move(row));
}

void LeaveOutIdle(Rows* rows) {
  std::erase_if(rows->tenants, [](const TenantRow& row) {
    return row.view.leased_bytes() == 0 && row.waiting == 0;
  });
  std::erase_if(rows->sessions, [](const SessionRow& row) {
    return IsParked(row.info.gate()) && row.info.waiting() == 0;
  });
}

Moved MovedBetween(const Sight& sight, const std::string& device) {
  const Moved now = SumOf(sight.look->moved, "", device);
  const Moved then = SumOf(sight.before->moved, "", device);
  return {.evicted_bytes = now.evicted_bytes - then.evicted_bytes,
          .restored_bytes = now.restored_bytes - then.restored_bytes};
}

}  // namespace

std::string NameOf(Sort sort) {
  switch (sort) {
    case Sort::kBytes:
      return "bytes";
    case Sort::kChange:
      return "change";
    case Sort::kEvicted:
      return "evicted";
    case Sort::kWaiting:
      return "waiting";
    case Sort::kIdle:
      return "idle";
    case Sort::kName:
      break;
  }
  return "name";
}

std::optional<Sort> SortNamed(const std::string& name) {
  for (const Sort sort : kSorts) {
    if (NameOf(sort) == name) return sort;
  }
  return std::nullopt;
}

Rows MakeRows(const Sight& sight, const Choice& choice) {
  Rows rows;
  if (sight.look == nullptr) return rows;
  rows.tenants = TenantRows(sight, choice);
  rows.sessions = SessionRows(sight, choice);
  AddStates(sight.look->sessions, &rows);
  if (choice.hide_idle) LeaveOutIdle(&rows);
  Order(choice, &rows.tenants);
  Order(choice, &rows.sessions);
  return rows;
}

Rate EvictedOn(const Sight& sight, const std::string& device) {
  if (sight.look == nullptr || sight.before == nullptr) return std::nullopt;
  return RateOf(MovedBetween(sight, device).evicted_bytes, 0,
                SecondsBetween(sight));
}

Rate RestoredOn(const Sight& sight, const std::string& device) {
  if (sight.look == nullptr || sight.before == nullptr) return std::nullopt;
  return RateOf(MovedBetween(sight, device).restored_bytes, 0,
                SecondsBetween(sight));
}

}  // namespace gmb::cli::top
