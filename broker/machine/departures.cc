// Tenants that are being deleted while they have sessions: those are asked to
// end, lose what is parked, and are killed at the deadline where that is
// allowed.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/news.h"
#include "broker/machine/operator_desk.h"
#include "broker/machine/refusals.h"
#include "broker/machine/tenant_fit.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// For the end of a process that was killed to be noticed.
constexpr quota::Nanoseconds kLastBreath = std::chrono::seconds(2);

absl::Status StillThere(const State& state, const Tenant& tenant) {
  if (state.sessions->OfTenant(tenant.id).empty()) {
    return StillLeased(tenant.policy.name, LeasedBytes(state, tenant.id));
  }
  return proto::MakeError(
      v1::BAD_STATE,
      absl::StrCat("its sessions did not end in time, and it may not be "
                   "terminated, or can not; the tenant stays: end them (`gmb "
                   "session list` shows them) and delete it again: tenant=",
                   tenant.policy.name,
                   " sessions=", state.sessions->OfTenant(tenant.id).size()));
}

// Also its leases, which may still be copied, or made, when the sessions are
// gone.
bool HasLeft(const State& state, quota::TenantId tenant) {
  return state.sessions->OfTenant(tenant).empty() &&
         LeasedBytes(state, tenant) == 0;
}

// Whether one at least was killed.
bool KillSessions(State& state, SessionDesk& sessions, const Tenant& tenant,
                  Turn& turn) {
  if (!tenant.policy.reclaim.may_terminate) return false;
  bool killed = false;
  for (const uint64_t id : state.sessions->OfTenant(tenant.id))
    killed |= sessions.Terminate(&state.SessionAt(id), turn);
  return killed;
}

}  // namespace

absl::Status OperatorDesk::StartDeparture(absl::string_view name,
                                          quota::Nanoseconds wait,
                                          Departure::Done done, Turn& turn) {
  const Tenant* tenant = state_.tenants->Find(name);
  if (*state_.stopping) return Stopping();
  if (tenant == nullptr) return NoSuchTenant(name);
  if (state_.departures->contains(tenant->id)) {
    return proto::MakeError(v1::BAD_STATE,
                            "the tenant is being deleted already");
  }
  state_.departures.Edit({}).emplace(tenant->id,
                                     Departure{.deadline = turn.now() + wait,
                                               .killed = false,
                                               .done = std::move(done)});
  turn.Publish(NewEvent(state_, "tenant_leaving", tenant->id));
  SeeOff(*tenant, wait, turn);
  return absl::OkStatus();
}

// Its sessions are told, what they wait for is refused, what is parked is taken
// where it lies.
void OperatorDesk::SeeOff(const Tenant& tenant, quota::Nanoseconds wait,
                          Turn& turn) {
  for (const uint64_t id : state_.sessions->OfTenant(tenant.id)) {
    Session* session = &state_.SessionAt(id);
    v1::BrokerMessage message;
    *message.mutable_draining()->mutable_remaining() = ToProto(wait);
    SessionDesk::Say(session, std::move(message), turn);
    requests_.WithdrawAll(session, Leaving(tenant.policy.name), turn);
    sharing_.GiveUpAllOf(session, Leaving(tenant.policy.name), turn);
  }
  sharing_.DropAll(tenant.id, turn);
  for (const auto& [pool_id, pool] : *state_.pools) {
    reclaimer_.AddStanding({{.cause = quota::Cause::kTenantDelete,
                             .tenant = tenant.id,
                             .pool = pool_id,
                             .look = {},
                             .deadline = turn.now() + wait}},
                           turn);
  }
}

void OperatorDesk::CheckDepartures(quota::Instant now, Turn& turn) {
  auto& departures = state_.departures.Edit({});
  for (auto it = departures.begin(); it != departures.end();) {
    const Tenant& tenant = state_.TenantAt(it->first);
    Departure& departure = it->second;
    // One that was answered stays on the list, so that nobody comes before the
    // tenant is deleted, or is to stay after all.
    const bool waits = departure.done != nullptr;
    if (waits && HasLeft(state_, tenant.id)) {
      turn.Add(Reply{
          [done = std::move(departure.done)] { done(absl::OkStatus()); }});
      departure.done = nullptr;
      ++it;
    } else if (!waits || now < departure.deadline) {
      ++it;
    } else if (!departure.killed &&
               KillSessions(state_, sessions_, tenant, turn)) {
      departure.killed = true;
      departure.deadline = now + kLastBreath;
      ++it;
    } else {
      turn.Add(Reply{[done = std::move(departure.done),
                      status = StillThere(state_, tenant)] { done(status); }});
      turn.Publish(NewEvent(state_, "tenant_stays", tenant.id));
      it = departures.erase(it);
    }
  }
}

void OperatorDesk::EndDeparture(absl::string_view name, Turn& turn) {
  const Tenant* const tenant = state_.tenants->Find(name);
  if (tenant == nullptr || !state_.departures->contains(tenant->id)) return;
  auto departure = state_.departures.Edit({}).extract(tenant->id);
  if (departure.mapped().done == nullptr) return;
  turn.Add(Reply{[done = std::move(departure.mapped().done)] {
    done(proto::MakeError(v1::BAD_STATE, "the tenant stays after all"));
  }});
}

absl::StatusOr<uint32_t> OperatorDesk::DropLease(absl::string_view tenant_name,
                                                 const std::string& name,
                                                 Turn& turn) {
  if (*state_.stopping) return Stopping();
  const Tenant* tenant = state_.tenants->Find(tenant_name);
  if (tenant == nullptr) return NoSuchTenant(tenant_name);
  return sharing_.DropName(tenant->id, name, turn);
}

void OperatorDesk::EndKept(absl::string_view tenant_name, Turn& turn) {
  const Tenant* tenant = state_.tenants->Find(tenant_name);
  if (tenant == nullptr || !state_.sessions->OfTenant(tenant->id).empty())
    return;
  sharing_.DropAll(tenant->id, turn);
}

absl::Status OperatorDesk::StartReclaim(const v1::ReclaimRequest& request,
                                        StandingDemand::Done done, Turn& turn) {
  if (*state_.stopping) return Stopping();
  return reclaimer_.StartReclaim(request, std::move(done), turn);
}

void OperatorDesk::BeginDrain(absl::Duration deadline, Turn& turn) {
  if (state_.drain_until->has_value()) return;
  state_.drain_until.Edit({}) = turn.wall() + deadline;
  v1::Event event = NewEvent(state_, "draining", std::nullopt);
  event.set_message(
      "no new grants; sessions are asked to release what they hold");
  turn.Publish(std::move(event));
  for (const auto& [id, pool] : *state_.pools)
    quota_.Tell(quota::PoolDrain{id, true}, turn);
  for (const auto& [id, session] : *state_.sessions) {
    if (!session->tenant.has_value()) continue;
    v1::BrokerMessage message;
    message.mutable_draining()->mutable_remaining()->set_seconds(
        absl::ToInt64Seconds(deadline));
    SessionDesk::Say(session.get(), std::move(message), turn);
  }
}

void OperatorDesk::RefuseWaiting(Turn& turn) {
  state_.stopping.Edit({}) = true;
  reclaimer_.EndStanding(Stopping(), turn);
  for (auto& [tenant, departure] : state_.departures.Edit({})) {
    if (departure.done == nullptr) continue;
    turn.Add(Reply{[done = std::move(departure.done)] { done(Stopping()); }});
  }
  state_.departures.Edit({}).clear();
}

}  // namespace gmb::broker
