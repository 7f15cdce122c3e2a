// Tenants that are being deleted while they have sessions: those are asked to
// end, lose what is parked, and are killed at the deadline where that is
// allowed.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/machine.h"
#include "broker/machine/refusals.h"
#include "broker/machine/turn.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// For the end of a process that was killed to be noticed.
constexpr quota::Nanoseconds kLastBreath = std::chrono::seconds(2);

absl::Status Leaving(absl::string_view name) {
  return proto::MakeError(
      v1::DRAINING,
      absl::StrCat("the tenant is being deleted: release what it holds and "
                   "end: tenant=",
                   name));
}

absl::Status StillThere(const Tenant& tenant) {
  return proto::MakeError(
      v1::BAD_STATE,
      absl::StrCat("its sessions did not end in time, and it may not be "
                   "terminated, or can not; the tenant stays: end them (`gmb "
                   "session list` shows them) and delete it again: tenant=",
                   tenant.policy.name, " sessions=", tenant.sessions.size()));
}

}  // namespace

absl::Status Machine::CheckStays(quota::TenantId tenant) const {
  if (!state_.departures.contains(tenant)) return absl::OkStatus();
  return Leaving(state_.TenantAt(tenant).policy.name);
}

absl::Status Machine::StartDeparture(absl::string_view name,
                                     quota::Nanoseconds wait,
                                     Departure::Done done, Turn& turn) {
  const Tenant* tenant = state_.tenants.Find(name);
  if (state_.stopping) return Stopping();
  if (tenant == nullptr) return NoSuchTenant(name);
  if (state_.departures.contains(tenant->id)) {
    return proto::MakeError(v1::BAD_STATE,
                            "the tenant is being deleted already");
  }
  state_.departures.emplace(tenant->id, Departure{.deadline = turn.now() + wait,
                                                  .killed = false,
                                                  .done = std::move(done)});
  turn.Publish(NewEvent("tenant_leaving", tenant->id));
  SeeOff(*tenant, wait, turn);
  return absl::OkStatus();
}

// Its sessions are told, what they wait for is refused, what is parked is taken
// where it lies.
void Machine::SeeOff(const Tenant& tenant, quota::Nanoseconds wait,
                     Turn& turn) {
  for (const uint64_t id : tenant.sessions) {
    Session* session = &state_.SessionAt(id);
    v1::BrokerMessage message;
    *message.mutable_draining()->mutable_remaining() = ToProto(wait);
    Say(session, std::move(message), turn);
    const std::vector<std::pair<uint64_t, quota::RequestId>> waiting(
        session->pending.begin(), session->pending.end());
    for (const auto& [client_id, request] : waiting) {
      const auto asked = state_.pending.find(request);
      if (asked == state_.pending.end()) continue;  // served meanwhile
      const PendingAcquire given_up = asked->second;
      state_.pending.erase(asked);
      Tell(quota::Cancel{request}, turn);
      EndName(tenant.id, given_up, turn);
      Refuse(session, client_id, Leaving(tenant.policy.name), turn);
    }
    for (const uint64_t client_id : state_.shared_names.RequestsOf(id))
      GiveUpAttach(session, client_id, Leaving(tenant.policy.name), turn);
  }
  DropAll(tenant.id, turn);
  for (const auto& [pool_id, pool] : state_.pools) {
    AddStanding({.cause = quota::Cause::kTenantDelete,
                 .tenant = tenant.id,
                 .pool = pool_id,
                 .look = {},
                 .deadline = state_.departures.at(tenant.id).deadline},
                turn);
  }
}

void Machine::CheckDepartures(quota::Instant now, Turn& turn) {
  for (auto it = state_.departures.begin(); it != state_.departures.end();) {
    const Tenant& tenant = state_.TenantAt(it->first);
    Departure& departure = it->second;
    // One that was answered stays on the list, so that nobody comes before the
    // tenant is deleted, or is to stay after all.
    const bool waits = departure.done != nullptr;
    if (waits && tenant.sessions.empty() && !HasMoving(tenant.id)) {
      turn.Add(Reply{
          [done = std::move(departure.done)] { done(absl::OkStatus()); }});
      departure.done = nullptr;
      ++it;
    } else if (!waits || now < departure.deadline) {
      ++it;
    } else if (!departure.killed && KillSessions(tenant, turn)) {
      departure.killed = true;
      departure.deadline = now + kLastBreath;
      ++it;
    } else {
      turn.Add(Reply{[done = std::move(departure.done),
                      status = StillThere(tenant)] { done(status); }});
      turn.Publish(NewEvent("tenant_stays", tenant.id));
      it = state_.departures.erase(it);
    }
  }
}

// Leases that have ended, or are about to, and are still being copied.
bool Machine::HasMoving(quota::TenantId tenant) const {
  for (const quota::LeaseId id : state_.moving) {
    if (state_.LeaseAt(id).tenant == tenant) return true;
  }
  return false;
}

// Whether one at least was killed.
bool Machine::KillSessions(const Tenant& tenant, Turn& turn) {
  if (!tenant.policy.reclaim.may_terminate) return false;
  bool killed = false;
  for (const uint64_t id : tenant.sessions)
    killed |= Terminate(&state_.SessionAt(id), turn);
  return killed;
}

void Machine::EndDeparture(absl::string_view name) {
  if (const Tenant* tenant = state_.tenants.Find(name))
    state_.departures.erase(tenant->id);
}

}  // namespace gmb::broker
