// Leases that leave the device and come back, and sessions that are paused.
#include <algorithm>
#include <utility>

#include "quota/engine_state.h"
#include "quota/must_find.h"

namespace gmb::quota {

Ledger::Place Engine::State::PlaceOf(const LeaseView& lease) {
  if (lease.evicted) return Ledger::Place::kEvicted;
  return lease.hard ? Ledger::Place::kHard : Ledger::Place::kSoft;
}

void Engine::State::Move(LeaseView& lease, bool hard, bool evicted) {
  const Ledger::Place from = PlaceOf(lease);
  lease.hard = hard;
  lease.evicted = evicted;
  Ledger& ledger = FindPool(lease.pool)->ledger;
  ledger.MoveLease(*ledger.Find(lease.tenant), lease.bytes, from,
                   PlaceOf(lease));
}

void Engine::State::On(const HardChanged& event, Effects& effects) {
  const auto it = leases.find(event.lease);
  if (it == leases.end() || it->second.evicted) return;
  if (it->second.hard == event.hard) return;
  Move(it->second, event.hard, false);
  Settle(it->second.pool, *FindPool(it->second.pool), effects);
}

void Engine::State::On(const Evicted& event, Effects& effects) {
  const auto it = leases.find(event.lease);
  if (it == leases.end() || it->second.evicted) return;
  // Serving others makes leases, which moves those in the table.
  const PoolId pool = it->second.pool;
  Move(it->second, false, true);
  JoinRestore(event.lease, effects);
  Settle(pool, *FindPool(pool), effects);
}

void Engine::State::CollectParts(Request& request) const {
  request.parts.clear();
  request.sessions.clear();
  for (const LeaseId id : request.leases) {
    const LeaseView& lease = MustFind(leases, id, "lease");
    if (lease.session != SessionId{}) request.sessions.push_back(lease.session);
    auto part = std::find_if(
        request.parts.begin(), request.parts.end(),
        [&](const Part& other) { return other.pool == lease.pool; });
    if (part == request.parts.end()) {
      request.parts.push_back(
          {.pool = lease.pool,
           .ask = {.bytes = 0, .hard = false, .restore = true}});
      part = std::prev(request.parts.end());
    }
    part->ask.bytes += lease.bytes;
  }
  std::sort(request.sessions.begin(), request.sessions.end());
  request.sessions.erase(
      std::unique(request.sessions.begin(), request.sessions.end()),
      request.sessions.end());
  std::sort(request.parts.begin(), request.parts.end(),
            [](const Part& a, const Part& b) { return a.pool < b.pool; });
}

void Engine::State::On(const Restore& event, Effects& effects) {
  if (waiters.contains(event.request)) return;
  Request request{.request = event.request,
                  .session = event.session,
                  .tenant = {},
                  .deadline = event.deadline,
                  .handles = 0,
                  .parts = {},
                  .leases = event.leases,
                  .sessions = {}};
  std::sort(request.leases.begin(), request.leases.end());
  request.leases.erase(
      std::unique(request.leases.begin(), request.leases.end()),
      request.leases.end());
  std::erase_if(request.leases, [&](LeaseId id) {
    const auto it = leases.find(id);
    return it == leases.end() || !it->second.evicted;
  });
  if (request.leases.empty()) {
    effects.push_back(
        Restored{.request = event.request, .session = event.session});
    return;
  }
  request.tenant = MustFind(leases, request.leases.front(), "lease").tenant;
  std::optional<Refusal> refusal;
  for (const LeaseId id : request.leases) {
    if (restoring.contains(id)) refusal = {.reason = Reason::kBadState};
    if (MustFind(leases, id, "lease").tenant != request.tenant) {
      refusal = {.reason = Reason::kBadRequest};
      break;
    }
  }
  if (!refusal) {
    CollectParts(request);
    for (const Part& part : request.parts) {
      const Ledger& ledger = FindPool(part.pool)->ledger;
      refusal = CheckEver(ledger, *ledger.Find(request.tenant), part.ask);
      if (refusal) break;
    }
  }
  if (refusal) {
    effects.push_back(Denied{.request = event.request,
                             .session = event.session,
                             .reason = refusal->reason,
                             .deficit_bytes = refusal->deficit_bytes});
    return;
  }
  Decide(std::move(request), effects);
}

void Engine::State::BringBack(const Request& request, Effects& effects) {
  uint64_t bytes = 0;
  for (const LeaseId id : request.leases) {
    LeaseView& lease = MustFind(leases, id, "lease");
    Move(lease, false, false);
    bytes += lease.bytes;
  }
  effects.push_back(Restored{.request = request.request,
                             .session = request.session,
                             .tenant = request.tenant,
                             .bytes = bytes,
                             .leases = request.leases});
}

void Engine::State::LeaveOut(LeaseId lease, RequestId request,
                             Effects& effects) {
  WaiterRecord record = Dequeue(request);
  std::vector<PoolId> touched;
  for (const Part& part : record.asked.parts) touched.push_back(part.pool);
  std::erase(record.asked.leases, lease);
  if (record.asked.leases.empty()) {
    effects.push_back(
        Restored{.request = request, .session = record.asked.session});
  } else {
    CollectParts(record.asked);
    Enqueue(std::move(record));
  }
  SettleAll(std::move(touched), effects);
}

void Engine::State::JoinRestore(LeaseId lease, Effects& effects) {
  const auto waiting =
      restores.find(MustFind(leases, lease, "lease").session);  // 0: none
  if (waiting == restores.end()) return;
  // A Restore is one tenant's, whatever a caller takes for a session.
  const auto joined = std::find_if(
      waiting->second.begin(), waiting->second.end(),
      [&](const Arrival& arrival) {
        return MustFind(waiters, arrival.request, "request").asked.tenant ==
               MustFind(leases, lease, "lease").tenant;
      });
  if (joined == waiting->second.end()) return;
  WaiterRecord record = Dequeue(joined->request);
  Request& asked = record.asked;
  asked.leases.push_back(lease);
  std::sort(asked.leases.begin(), asked.leases.end());
  CollectParts(asked);
  std::vector<PoolId> touched;
  std::optional<Refusal> refusal;
  for (const Part& part : asked.parts) {
    touched.push_back(part.pool);
    if (refusal) continue;
    const Ledger& ledger = FindPool(part.pool)->ledger;
    refusal = CheckEver(ledger, *ledger.Find(asked.tenant), part.ask);
  }
  if (refusal) {
    effects.push_back(Denied{.request = asked.request,
                             .session = asked.session,
                             .reason = refusal->reason,
                             .deficit_bytes = refusal->deficit_bytes});
  } else {
    Enqueue(std::move(record));
  }
  SettleAll(std::move(touched), effects);
}

void Engine::State::On(const Shared& event, Effects& effects) {
  const auto it = leases.find(event.lease);
  if (it == leases.end()) return;
  it->second.session = {};
  const auto waits = restoring.find(event.lease);
  if (waits == restoring.end()) return;
  // Its session's other losses do not join this Restore for its sake.
  WaiterRecord record = Dequeue(waits->second);
  CollectParts(record.asked);
  std::vector<PoolId> touched;
  for (const Part& part : record.asked.parts) touched.push_back(part.pool);
  Enqueue(std::move(record));
  SettleAll(std::move(touched), effects);
}

void Engine::State::On(const SessionPausing& event, Effects& effects) {
  if (!event.pausing) {
    pausing.erase(event.session);
    return;
  }
  pausing.insert(event.session);
  const auto session = sessions.find(event.session);
  if (session == sessions.end()) return;
  std::vector<RequestId> doomed;
  for (const Arrival& arrival : session->second) {
    const Request& asked = MustFind(waiters, arrival.request, "request").asked;
    if (!IsWithinGuarantee(asked)) doomed.push_back(arrival.request);
  }
  std::vector<PoolId> touched;
  for (const RequestId id : doomed) {
    const Request request = Dequeue(id).asked;
    const Refusal refusal = WhyWaited(request);
    effects.push_back(Denied{.request = id,
                             .session = event.session,
                             .reason = refusal.reason,
                             .deficit_bytes = refusal.deficit_bytes,
                             .claimed = refusal.claimed,
                             .retry_after = options.pass_window,
                             .pausing = true});
    for (const Part& part : request.parts) touched.push_back(part.pool);
  }
  SettleAll(std::move(touched), effects);
}

}  // namespace gmb::quota
