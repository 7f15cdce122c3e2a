// The waiting requests in their orders: by deadline, claim, session and lease.
#include "quota/waiters.h"

#include <utility>

namespace gmb::quota {

const Waiter& Waiters::Add(Waiter&& waiter, Instant now) {
  const Request& asked = waiter.asked;
  const Arrival arrival{.place = waiter.place, .request = asked.request};
  sessions_[asked.session].insert(arrival);
  expiries_.insert(ExpiryOf(waiter));
  for (const LeaseId lease : asked.leases) {
    restoring_.emplace(lease, asked.request);
  }
  for (const LeaseId lease : asked.back) back_.emplace(lease, asked.request);
  for (const SessionId owner : asked.sessions) restores_[owner].insert(arrival);
  if (waiter.window) ScheduleTurn(waiter, now);
  const RequestId id = asked.request;
  return table_.emplace(id, std::move(waiter)).first->second;
}

Waiter Waiters::Remove(RequestId request) {
  const auto it = table_.find(request);
  Waiter waiter = std::move(it->second);
  table_.erase(it);
  if (waiter.window) turns_.erase(TurnOf(waiter));
  const Request& asked = waiter.asked;
  const Arrival arrival{.place = waiter.place, .request = request};
  const auto leave = [&](Arrivals& arrivals, SessionId session) {
    const auto entry = arrivals.find(session);
    entry->second.erase(arrival);
    if (entry->second.empty()) arrivals.erase(entry);
  };
  leave(sessions_, asked.session);
  expiries_.erase(ExpiryOf(waiter));
  for (const LeaseId lease : asked.leases) restoring_.erase(lease);
  for (const LeaseId lease : asked.back) back_.erase(lease);
  for (const SessionId owner : asked.sessions) leave(restores_, owner);
  return waiter;
}

void Waiters::PutOff(RequestId request, Instant deadline, Nanoseconds linger,
                     Nanoseconds longest) {
  Waiter& waiter = MustFind(table_, request, "request");
  const Instant last = waiter.since + longest;
  const Request& asked = waiter.asked;
  if (asked.parts.size() > 1 || asked.deadline >= last) return;
  SetDeadline(waiter, std::max(asked.deadline, std::min(deadline, last)),
              linger);
}

bool Waiters::BeginToLinger(RequestId request, Instant now) {
  Waiter& waiter = MustFind(table_, request, "request");
  const Request& asked = waiter.asked;
  if (asked.parts.size() > 1 || asked.linger <= Nanoseconds(0)) return false;
  SetDeadline(waiter, now + asked.linger, Nanoseconds(0));
  return true;
}

void Waiters::SetDeadline(Waiter& waiter, Instant deadline,
                          Nanoseconds linger) {
  expiries_.erase(ExpiryOf(waiter));
  waiter.asked.deadline = deadline;
  waiter.asked.linger = linger;
  expiries_.insert(ExpiryOf(waiter));
}

std::optional<Instant> Waiters::NextDeadline() const {
  if (expiries_.empty()) return std::nullopt;
  const Instant expiry = expiries_.begin()->deadline;
  if (turns_.empty()) return expiry;
  return std::min(expiry, turns_.begin()->deadline);
}

std::vector<RequestId> Waiters::OfSession(SessionId session) const {
  std::vector<RequestId> requests;
  const auto it = sessions_.find(session);
  if (it == sessions_.end()) return requests;
  for (const Arrival& arrival : it->second) requests.push_back(arrival.request);
  return requests;
}

std::optional<RequestId> Waiters::RestoreOf(LeaseId lease) const {
  const auto it = restoring_.find(lease);
  if (it == restoring_.end()) return std::nullopt;
  return it->second;
}

const Request* Waiters::ForgetBack(LeaseId lease, uint64_t bytes, bool taken) {
  const auto it = back_.find(lease);
  if (it == back_.end()) return nullptr;
  Request& asked = MustFind(table_, it->second, "request").asked;
  back_.erase(it);
  std::erase(asked.back, lease);
  asked.back_bytes -= bytes;
  asked.comes_whole |= taken;
  return &asked;
}

std::optional<RequestId> Waiters::RestoreOf(SessionId owner,
                                            TenantId tenant) const {
  const auto waiting = restores_.find(owner);
  if (waiting == restores_.end()) return std::nullopt;
  // A Restore is one tenant's, whatever a caller takes for a session.
  const auto found =
      std::find_if(waiting->second.begin(), waiting->second.end(),
                   [&](const Arrival& arrival) {
                     return Of(arrival.request).asked.tenant == tenant;
                   });
  if (found == waiting->second.end()) return std::nullopt;
  return found->request;
}

const Waiter* Waiters::BeginClaim(RequestId request, Instant from,
                                  Instant now) {
  Waiter& waiter = MustFind(table_, request, "request");
  if (waiter.window) return nullptr;
  waiter.window = ClaimWindow{.from = from};
  ScheduleTurn(waiter, now);
  return &waiter;
}

void Waiters::ScheduleTurn(Waiter& waiter, Instant now) {
  waiter.turns_at = PhaseAt(*waiter.window, now).until;
  if (waiter.turns_at != Instant::Max()) turns_.insert(TurnOf(waiter));
}

}  // namespace gmb::quota
