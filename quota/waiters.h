// All requests that wait, over all pools: when each expires, what it claims and
// until when, and whose it is.
#ifndef GMB_QUOTA_WAITERS_H_
#define GMB_QUOTA_WAITERS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "quota/claim.h"
#include "quota/must_find.h"
#include "quota/request.h"

namespace gmb::quota {

struct Waiter {
  Request asked;
  uint64_t place = 0;  // in the order of arrival, over all pools
  Instant since;
  // Of one that was the head of a queue: when it holds, and when that
  // changes.
  std::optional<ClaimWindow> window = {};
  Instant turns_at = Instant::Max();
};

class Waiters {
 public:
  // In the order of arrival.
  struct Arrival {
    uint64_t place = 0;
    RequestId request;

    friend bool operator<(const Arrival& a, const Arrival& b) {
      return a.place < b.place;
    }
  };

  [[nodiscard]] bool Contains(RequestId request) const {
    return table_.contains(request);
  }
  // One that must wait.
  [[nodiscard]] const Waiter& Of(RequestId request) const {
    return MustFind(table_, request, "request");
  }
  [[nodiscard]] uint64_t size() const { return table_.size(); }
  // For the next that arrives.
  uint64_t NextPlace() { return ++last_place_; }

  // It stays where it is until it is removed.
  const Waiter& Add(Waiter&& waiter, Instant now);
  // Of one that must wait: answers it.
  Waiter Remove(RequestId request);

  // The one whose deadline is over for the longest time, if one's is.
  [[nodiscard]] std::optional<RequestId> Expired(Instant now) const {
    if (expiries_.empty() || expiries_.begin()->deadline > now)
      return std::nullopt;
    return expiries_.begin()->request;
  }
  // It waits until `deadline`, if that is the later one and within `longest` of its
  // beginning, and lingers from then on. One of several pools does neither: it would
  // keep bytes in one pool for as long as another lacks some.
  void PutOff(RequestId request, Instant deadline, Nanoseconds linger,
              Nanoseconds longest);
  // Its deadline is over. False: and so is the time that it may linger.
  bool BeginToLinger(RequestId request, Instant now);
  // When the next expires, or the next claim begins or ceases to hold.
  [[nodiscard]] std::optional<Instant> NextDeadline() const;

  // The session's, in the order of arrival.
  [[nodiscard]] std::vector<RequestId> OfSession(SessionId session) const;
  // The Restore that waits for this lease, if one does.
  [[nodiscard]] std::optional<RequestId> RestoreOf(LeaseId lease) const;
  // A lease is off the device again, `taken` from there, or is no more. Answers
  // the Restore that it had come back for while the rest waits; null: none.
  const Request* ForgetBack(LeaseId lease, uint64_t bytes, bool taken);
  // The tenant's oldest Restore of leases of this session.
  [[nodiscard]] std::optional<RequestId> RestoreOf(SessionId owner,
                                                   TenantId tenant) const;

  // From `from` on it holds and lets pass in turns. Null: it does already.
  const Waiter* BeginClaim(RequestId request, Instant from, Instant now);
  // Brings the claims up to date with the time; `first_hold(request)` says how
  // long one holds at first that comes to hold now. Answers their pools.
  template <typename FirstHold>
  std::vector<PoolId> TurnClaims(Instant now, const FirstHold& first_hold);

 private:
  // In the order of their deadlines, or of their claims' turns.
  struct Expiry {
    Instant deadline;
    uint64_t place = 0;
    RequestId request;

    friend bool operator<(const Expiry& a, const Expiry& b) {
      return std::tie(a.deadline, a.place) < std::tie(b.deadline, b.place);
    }
  };
  using Arrivals = absl::btree_map<SessionId, absl::btree_set<Arrival>>;

  static Expiry ExpiryOf(const Waiter& waiter) {
    return {.deadline = waiter.asked.deadline,
            .place = waiter.place,
            .request = waiter.asked.request};
  }
  static Expiry TurnOf(const Waiter& waiter) {
    return {.deadline = waiter.turns_at,
            .place = waiter.place,
            .request = waiter.asked.request};
  }
  void ScheduleTurn(Waiter& waiter, Instant now);
  void SetDeadline(Waiter& waiter, Instant deadline, Nanoseconds linger);

  uint64_t last_place_ = 0;
  // All in trees: a table that grows, or sweeps what was erased, moves all in the
  // one event that it happens in.
  std::map<RequestId, Waiter> table_;
  absl::btree_set<Expiry> expiries_;
  absl::btree_set<Expiry> turns_;  // of claims
  Arrivals sessions_;
  Arrivals restores_;  // waiting Restores of a session's leases
  absl::btree_map<LeaseId, RequestId> restoring_;
  absl::btree_map<LeaseId, RequestId> back_;  // in part
};

template <typename FirstHold>
std::vector<PoolId> Waiters::TurnClaims(Instant now,
                                        const FirstHold& first_hold) {
  std::vector<PoolId> touched;
  while (!turns_.empty() && turns_.begin()->deadline <= now) {
    Waiter& waiter = MustFind(table_, turns_.begin()->request, "request");
    turns_.erase(turns_.begin());
    Nanoseconds& first = waiter.window->first;
    if (first == Nanoseconds(0)) first = first_hold(waiter.asked);
    ScheduleTurn(waiter, now);
    waiter.asked.AddPoolsTo(touched);
  }
  return touched;
}

}  // namespace gmb::quota

#endif  // GMB_QUOTA_WAITERS_H_
