// Tenants that are being deleted while they have sessions: those are asked to
// end, lose what is parked, and are killed at the deadline where that is
// allowed.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/refusals.h"
#include "broker/core/wire_form.h"
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

absl::Status Core::CheckStays(quota::TenantId tenant) const {
  if (!departures_.contains(tenant)) return absl::OkStatus();
  return Leaving(tenants_.at(tenant).policy.name);
}

absl::Status Core::AddDeparture(absl::string_view name, quota::Nanoseconds wait,
                                Departure::Done done, Afterwards* after) {
  const Tenant* tenant = tenants_.Find(name);
  if (stopping_) return Stopping();
  if (tenant == nullptr) return NoSuchTenant(name);
  if (departures_.contains(tenant->id)) {
    return proto::MakeError(v1::BAD_STATE,
                            "the tenant is being deleted already");
  }
  departures_.emplace(tenant->id,
                      Departure{.deadline = deps_.clock->Now() + wait,
                                .killed = false,
                                .done = std::move(done)});
  deps_.events->Publish(NewEvent("tenant_leaving", tenant->id));
  SeeOff(*tenant, wait, after);
  Maintain(after);
  return absl::OkStatus();
}

absl::Status Core::StartDeparture(absl::string_view name,
                                  quota::Nanoseconds wait,
                                  Departure::Done done) {
  Afterwards after;
  absl::Status added;
  {
    ipc::MutexLock lock(&mu_);
    added = AddDeparture(name, wait, std::move(done), &after);
  }
  after.Run(this);
  return added;
}

// Its sessions are told, what they wait for is refused, what is parked is taken
// where it lies.
void Core::SeeOff(const Tenant& tenant, quota::Nanoseconds wait,
                  Afterwards* after) {
  for (const uint64_t id : tenant.sessions) {
    Session* session = sessions_.at(id);
    v1::BrokerMessage message;
    *message.mutable_draining()->mutable_remaining() = ToProto(wait);
    Say(session, std::move(message), after);
    const std::vector<std::pair<uint64_t, quota::RequestId>> waiting(
        session->pending.begin(), session->pending.end());
    for (const auto& [client_id, request] : waiting) {
      const auto asked = pending_.find(request);
      if (asked == pending_.end()) continue;  // served meanwhile
      const PendingAcquire given_up = asked->second;
      pending_.erase(asked);
      Tell(quota::Cancel{request}, after);
      EndName(tenant.id, given_up, after);
      Refuse(session, client_id, Leaving(tenant.policy.name), after);
    }
    for (const uint64_t client_id : shared_names_.RequestsOf(id))
      GiveUpAttach(session, client_id, Leaving(tenant.policy.name), after);
  }
  DropAll(tenant.id, after);
  for (const auto& [pool_id, pool] : pools_) {
    AddStanding({.cause = quota::Cause::kTenantDelete,
                 .tenant = tenant.id,
                 .pool = pool_id,
                 .deadline = departures_.at(tenant.id).deadline});
  }
}

void Core::CheckDepartures(quota::Instant now, Afterwards* after) {
  for (auto it = departures_.begin(); it != departures_.end();) {
    const Tenant& tenant = tenants_.at(it->first);
    Departure& departure = it->second;
    if (tenant.sessions.empty() && !HasMoving(tenant.id)) {
      // It stays on the list, so that nobody comes before it is gone.
      if (departure.done != nullptr) {
        after->answers.emplace_back(
            [done = std::move(departure.done)] { done(absl::OkStatus()); });
        departure.done = nullptr;
      }
      ++it;
    } else if (now < departure.deadline) {
      ++it;
    } else if (!departure.killed && KillSessions(tenant, after)) {
      departure.killed = true;
      departure.deadline = now + kLastBreath;
      ++it;
    } else {
      after->answers.emplace_back(
          [done = std::move(departure.done), status = StillThere(tenant)] {
            if (done != nullptr) done(status);
          });
      deps_.events->Publish(NewEvent("tenant_stays", tenant.id));
      it = departures_.erase(it);
    }
  }
}

// Leases that have ended, or are about to, and are still being copied.
bool Core::HasMoving(quota::TenantId tenant) const {
  for (const quota::LeaseId id : moving_) {
    if (leases_.at(id)->tenant == tenant) return true;
  }
  return false;
}

// Whether one at least was killed.
bool Core::KillSessions(const Tenant& tenant, Afterwards* after) {
  if (!tenant.policy.reclaim.may_terminate) return false;
  bool killed = false;
  for (const uint64_t id : tenant.sessions)
    killed |= Terminate(sessions_.at(id), after);
  return killed;
}

void Core::EndDeparture(absl::string_view name) {
  ipc::MutexLock lock(&mu_);
  if (const Tenant* tenant = tenants_.Find(name)) departures_.erase(tenant->id);
}

}  // namespace gmb::broker
