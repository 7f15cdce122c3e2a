// The reference model's leases that leave the device and come back.
#include <algorithm>
#include <utility>

#include "tests/quota/reference_model.h"

namespace gmb::quota {

void ReferenceModel::End(LeaseId id) {
  const auto lease = leases_.find(id);
  if (lease == leases_.end()) return;
  for (ModelWaiter& waiter : waiters_) {
    Wanted& wanted = waiter.wanted;
    if (std::erase(wanted.leases, id) == 0) continue;
    uint64_t& bytes = wanted.bytes.at(lease->second.pool);
    bytes -= lease->second.bytes;
    if (bytes == 0) wanted.bytes.erase(lease->second.pool);
    if (wanted.bytes.empty()) {
      requests_.push_back(
          Restored{.request = wanted.request, .session = wanted.session});
    }
  }
  leases_.erase(lease);
  Take([](const Wanted& wanted) { return wanted.bytes.empty(); });
}

void ReferenceModel::On(const HardChanged& event) {
  const auto lease = leases_.find(event.lease);
  if (lease == leases_.end() || lease->second.evicted) return;
  lease->second.hard = event.hard;
}

void ReferenceModel::On(const Evicted& event) {
  const auto lease = leases_.find(event.lease);
  if (lease == leases_.end() || lease->second.evicted) return;
  lease->second.evicted = true;
  lease->second.hard = false;
  for (ModelWaiter& waiter : waiters_) {
    if (waiter.wanted.back.erase(event.lease) > 0)
      waiter.wanted.comes_whole = true;
  }
  for (ModelWaiter& waiter : waiters_) {
    Wanted& wanted = waiter.wanted;
    const bool same_session = std::any_of(
        wanted.leases.begin(), wanted.leases.end(), [&](LeaseId id) {
          return lease->second.session != SessionId{} &&
                 leases_.at(id).session == lease->second.session;
        });
    if (!same_session || wanted.tenant != lease->second.tenant) continue;
    wanted.leases.push_back(event.lease);
    wanted.bytes[lease->second.pool] += lease->second.bytes;
    if (wanted.bytes.size() > 1) wanted.back.clear();
    for (const auto& [pool, bytes] : wanted.bytes) {
      const auto refusal = Impossible(wanted, pool);
      if (!refusal) continue;
      const RequestId request = wanted.request;
      Deny(wanted, *refusal);
      Take([&](const Wanted& other) { return other.request == request; });
      return;
    }
    return;
  }
}

void ReferenceModel::On(const Restore& event) {
  if (IsWaiting(event.request)) {
    Wanted& waits = WaiterOf(event.request).wanted;
    const Instant last = waits.since + options_.longest_series;
    if (!waits.IsRestore() || waits.bytes.size() > 1 || waits.deadline >= last)
      return;
    waits.deadline = std::max(waits.deadline, std::min(event.deadline, last));
    waits.linger = event.linger;
    return;
  }
  Wanted wanted{.request = event.request,
                .session = event.session,
                .tenant = {},
                .bytes = {},
                .handles = 0,
                .deadline = event.deadline,
                .linger = event.linger,
                .hard = false,
                .leases = {}};
  bool several = false, waits = false;
  for (const auto& [id, lease] : leases_) {
    const bool named = std::find(event.leases.begin(), event.leases.end(),
                                 id) != event.leases.end();
    if (!named || !lease.evicted) continue;
    several =
        several || (!wanted.leases.empty() && lease.tenant != wanted.tenant);
    waits = waits || std::any_of(waiters_.begin(), waiters_.end(),
                                 [id = id](const ModelWaiter& waiter) {
                                   const auto& ids = waiter.wanted.leases;
                                   return std::find(ids.begin(), ids.end(),
                                                    id) != ids.end();
                                 });
    wanted.leases.push_back(id);
    wanted.tenant = lease.tenant;
    wanted.bytes[lease.pool] += lease.bytes;
  }
  if (wanted.leases.empty()) {
    requests_.push_back(
        Restored{.request = event.request, .session = event.session});
    return;
  }
  if (several) return Deny(wanted, {Reason::kBadRequest});
  if (waits) return Deny(wanted, {Reason::kBadState});
  for (const auto& [pool, bytes] : wanted.bytes) {
    if (const auto refusal = Impossible(wanted, pool))
      return Deny(wanted, *refusal);
  }
  Arrive(wanted);
}

void ReferenceModel::On(const Shared& event) {
  const auto lease = leases_.find(event.lease);
  if (lease == leases_.end()) return;
  lease->second.session = {};
  for (ModelWaiter& waiter : waiters_) {
    const auto& asked = waiter.wanted.leases;
    if (std::find(asked.begin(), asked.end(), event.lease) != asked.end())
      waiter.wanted.linger = Nanoseconds(0);
  }
}

void ReferenceModel::On(const BytesLeaving& event) {
  if (!chosen_) return;
  const Restored chosen = *std::exchange(chosen_, std::nullopt);
  const auto expect = [&](bool holds, const char* what) {
    if (!holds && wrong_.empty()) wrong_ = what;
    return holds;
  };
  if (!expect(IsWaiting(chosen.request), "it does not wait")) return;
  Wanted& wanted = WaiterOf(chosen.request).wanted;
  if (!expect(wanted.bytes.size() == 1 && wanted.bytes.contains(event.pool),
              "it asks for other pools")) {
    return;
  }
  expect(!wanted.comes_whole, "one was taken again");
  // It would be served next, if the bytes under way were here.
  for (const Wanted& earlier : Order(event.pool)) {
    if (earlier.request == wanted.request) break;
    const bool passed = !WithinGuarantee(earlier, event.pool) &&
                        (Lacking(earlier, event.pool) > 0 ||
                         LackingBeside(earlier, event.pool, false) > 0);
    expect(passed || WithinGuarantee(earlier, event.pool),
           "one before it could be served");
  }
  const bool borrows = !WithinGuarantee(wanted, event.pool);
  Wanted part = wanted;
  part.bytes.at(event.pool) = 0;
  for (const LeaseId id : chosen.leases) {
    if (!expect(std::erase(wanted.leases, id) == 1, "it asks for others"))
      return;
    const ModelLease& lease = leases_.at(id);
    expect(lease.evicted && lease.session != SessionId{}, "not to be restored");
    part.bytes.at(event.pool) += lease.bytes;
  }
  const uint64_t bytes = part.bytes.at(event.pool);
  const int64_t lacking =
      static_cast<int64_t>(wanted.bytes.at(event.pool)) - Free(event.pool);
  expect(bytes > 0 && !wanted.leases.empty(), "nothing, or all of it");
  expect(lacking <= static_cast<int64_t>(event.bytes), "more is lacking");
  expect(static_cast<int64_t>(bytes) <= Free(event.pool), "it does not fit");
  expect(!borrows || LackingBeside(part, event.pool, false) <= 0,
         "it breaks a claim");
  expect(!borrows || Committed(event.pool) <= Usable(event.pool),
         "it borrows what is broken");
  for (const LeaseId id : chosen.leases) leases_.at(id).evicted = false;
  wanted.bytes.at(event.pool) -= bytes;
  wanted.back.insert(chosen.leases.begin(), chosen.leases.end());
  requests_.push_back(Restored{.request = wanted.request,
                               .session = wanted.session,
                               .tenant = wanted.tenant,
                               .bytes = bytes,
                               .in_part = true});
}

void ReferenceModel::On(const SessionPausing& event) {
  if (!event.pausing) {
    pausing_.erase(event.session);
    return;
  }
  pausing_.insert(event.session);
  // One after the other, as in Expire.
  const auto doomed = [&](const ModelWaiter& waiter) {
    return waiter.wanted.session == event.session &&
           !WithinGuarantee(waiter.wanted);
  };
  while (true) {
    const auto next = std::find_if(waiters_.begin(), waiters_.end(), doomed);
    if (next == waiters_.end()) return;
    const Wanted request = next->wanted;
    waiters_.erase(next);
    Deny(request, WhyNotNow(request), true);
  }
}

}  // namespace gmb::quota
