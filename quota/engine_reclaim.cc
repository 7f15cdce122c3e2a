// Leases that leave the device and come back, and sessions that are paused.
#include <algorithm>
#include <iterator>
#include <utility>

#include "quota/engine_state.h"
#include "quota/in_part.h"

namespace gmb::quota {

void Engine::State::On(const HardChanged& event, Effects& effects) {
  const LeaseView* lease = leases.SetHard(event.lease, event.hard, pools);
  if (lease == nullptr) return;
  Settle(lease->pool, *pools.Find(lease->pool), effects);
}

void Engine::State::On(const Evicted& event, Effects& effects) {
  const LeaseView* lease = leases.Evict(event.lease, pools);
  if (lease == nullptr) return;
  // Serving others makes leases, which moves those in the table.
  const PoolId pool = lease->pool;
  ForgetBackInPart(event.lease, lease->bytes, /*taken=*/true, waiters, pools);
  JoinRestore(event.lease, effects);
  Settle(pool, *pools.Find(pool), effects);
}

void Engine::State::On(const Restore& event, Effects& effects) {
  if (waiters.Contains(event.request)) {
    if (waiters.Of(event.request).asked.IsRestore())
      waiters.PutOff(event.request, event.deadline, event.linger,
                     options.longest_series);
    return;
  }
  Request request{.request = event.request,
                  .session = event.session,
                  .tenant = {},
                  .deadline = event.deadline,
                  .take_by = event.deadline,
                  .linger = event.linger,
                  .handles = 0,
                  .parts = {},
                  .leases = event.leases,
                  .sessions = {}};
  std::sort(request.leases.begin(), request.leases.end());
  request.leases.erase(
      std::unique(request.leases.begin(), request.leases.end()),
      request.leases.end());
  std::erase_if(request.leases, [&](LeaseId id) {
    const LeaseView* lease = leases.Find(id);
    return lease == nullptr || !lease->evicted;
  });
  if (request.leases.empty()) {
    effects.push_back(
        Restored{.request = event.request, .session = event.session});
    return;
  }
  request.tenant = leases.Of(request.leases.front()).tenant;
  std::optional<Refusal> refusal;
  for (const LeaseId id : request.leases) {
    if (waiters.RestoreOf(id)) refusal = {.reason = Reason::kBadState};
    if (leases.Of(id).tenant != request.tenant) {
      refusal = {.reason = Reason::kBadRequest};
      break;
    }
  }
  if (!refusal) {
    leases.CollectParts(request);
    for (const Request::Part& part : request.parts) {
      const Ledger& ledger = pools.Find(part.pool)->ledger;
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
    bytes += leases.BringBack(id, pools).bytes;
  }
  effects.push_back(Restored{.request = request.request,
                             .session = request.session,
                             .tenant = request.tenant,
                             .bytes = bytes,
                             .leases = request.leases});
}

void Engine::State::On(const BytesLeaving& event, Effects& effects) {
  PoolState* pool = pools.Find(event.pool);
  if (pool == nullptr) return;
  const auto shortage = heads().NextShortage(event.pool, *pool, 0);
  if (!shortage || shortage->lacking_bytes > event.bytes) return;
  const Waiter& first = waiters.Of(shortage->request);
  if (!first.asked.IsRestore() || first.asked.parts.size() != 1 ||
      first.asked.comes_whole) {
    return;
  }
  std::vector<LeaseId> fitting =
      FittingNow(*pool, heads().ClaimsIn(event.pool, *pool), leases, first);
  if (fitting.empty()) return;
  Waiter waiter = Dequeue(shortage->request);
  Request& asked = waiter.asked;
  Restored restored{.request = asked.request,
                    .session = asked.session,
                    .tenant = asked.tenant,
                    .leases = std::move(fitting),
                    .in_part = true};
  for (const LeaseId id : restored.leases)
    restored.bytes += leases.BringBack(id, pools).bytes;
  // All by their ids.
  std::erase_if(asked.leases, [&](LeaseId id) {
    return std::binary_search(restored.leases.begin(), restored.leases.end(),
                              id);
  });
  std::vector<LeaseId> back;
  std::merge(asked.back.begin(), asked.back.end(), restored.leases.begin(),
             restored.leases.end(), std::back_inserter(back));
  asked.back = std::move(back);
  asked.back_bytes += restored.bytes;
  leases.CollectParts(asked);
  effects.push_back(std::move(restored));
  Enqueue(std::move(waiter));
  Settle(event.pool, *pool, effects);
}

void Engine::State::LeaveOut(LeaseId lease, RequestId request,
                             Effects& effects) {
  Waiter waiter = Dequeue(request);
  std::vector<PoolId> touched;
  waiter.asked.AddPoolsTo(touched);
  std::erase(waiter.asked.leases, lease);
  if (waiter.asked.leases.empty()) {
    effects.push_back(
        Restored{.request = request, .session = waiter.asked.session});
  } else {
    leases.CollectParts(waiter.asked);
    Enqueue(std::move(waiter));
  }
  SettleAll(std::move(touched), effects);
}

void Engine::State::JoinRestore(LeaseId lease, Effects& effects) {
  const LeaseView& evicted = leases.Of(lease);
  const std::optional<RequestId> joined =
      waiters.RestoreOf(evicted.session, evicted.tenant);  // 0: no session's
  if (!joined) return;
  Waiter waiter = Dequeue(*joined);
  Request& asked = waiter.asked;
  asked.leases.push_back(lease);
  std::sort(asked.leases.begin(), asked.leases.end());
  leases.CollectParts(asked);
  if (asked.parts.size() > 1) {
    asked.back.clear();
    asked.back_bytes = 0;
  }
  std::vector<PoolId> touched;
  std::optional<Refusal> refusal;
  for (const Request::Part& part : asked.parts) {
    touched.push_back(part.pool);
    if (refusal) continue;
    const Ledger& ledger = pools.Find(part.pool)->ledger;
    refusal = CheckEver(ledger, *ledger.Find(asked.tenant), part.ask);
  }
  if (refusal) {
    effects.push_back(Denied{.request = asked.request,
                             .session = asked.session,
                             .reason = refusal->reason,
                             .deficit_bytes = refusal->deficit_bytes});
  } else {
    Enqueue(std::move(waiter));
  }
  SettleAll(std::move(touched), effects);
}

void Engine::State::On(const Shared& event, Effects& effects) {
  if (!leases.Share(event.lease)) return;
  const std::optional<RequestId> restore = waiters.RestoreOf(event.lease);
  if (!restore) return;
  // Its session's other losses do not join this Restore for its sake.
  Waiter waiter = Dequeue(*restore);
  leases.CollectParts(waiter.asked);
  // While it waits nobody else can ask for that lease.
  waiter.asked.linger = Nanoseconds(0);
  std::vector<PoolId> touched;
  waiter.asked.AddPoolsTo(touched);
  Enqueue(std::move(waiter));
  SettleAll(std::move(touched), effects);
}

void Engine::State::On(const SessionPausing& event, Effects& effects) {
  if (!event.pausing) {
    pausing.erase(event.session);
    return;
  }
  pausing.insert(event.session);
  std::vector<RequestId> doomed = waiters.OfSession(event.session);
  std::erase_if(doomed, [&](RequestId request) {
    return pools.IsWithinGuarantee(waiters.Of(request).asked);
  });
  std::vector<PoolId> touched;
  for (const RequestId id : doomed) {
    const Request request = Dequeue(id).asked;
    Denied denied = DenialOf(request);
    denied.pausing = true;
    effects.push_back(denied);
    request.AddPoolsTo(touched);
  }
  SettleAll(std::move(touched), effects);
}

}  // namespace gmb::quota
