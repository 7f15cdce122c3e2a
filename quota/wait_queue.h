// The requests that wait for bytes of one pool, and whose turn it is.
//
// Order: requests within their tenant's guarantee, oldest first; then tenants
// by borrowed bytes over weight, of equals the one that has waited longest, and
// within a tenant the oldest request first. Requests that their tenant's own
// limit holds back are passed over. The queue finds the next request that fits
// in O(log n), whatever waits before it. Not thread-safe.
#ifndef GMB_QUOTA_WAIT_QUEUE_H_
#define GMB_QUOTA_WAIT_QUEUE_H_

#include <cstdint>
#include <optional>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "quota/claim.h"
#include "quota/min_tree.h"
#include "quota/must_find.h"
#include "quota/units.h"
#include "quota/wait_line.h"

namespace gmb::quota {

class WaitQueue {
 public:
  // `place` counts arrivals; later requests have greater ones.
  void Add(TenantId tenant, uint64_t place, RequestId request, const Ask& ask,
           const Standing& standing);
  void Remove(TenantId tenant, uint64_t place, uint64_t bytes,
              const Standing& standing);
  // From then on the waiting request may no longer be passed, while it claims.
  void SetPassableUntil(TenantId tenant, uint64_t place, Instant until);
  // A request of several pools that another pool has no bytes for is passed
  // over, as if its bytes lacked here.
  void SetLackingElsewhere(TenantId tenant, uint64_t place, bool lacking);
  // Does nothing for a tenant without waiting requests.
  void Update(TenantId tenant, const Standing& standing);

  // The first request within a guarantee of at most `free_bytes`.
  std::optional<RequestId> NextWithinGuarantee(int64_t free_bytes) const;
  // Calls `visit(tenant, request, bytes)` for them, those that are served first
  // first, until it answers false.
  template <typename Visitor>
  void ForEachWithinGuarantee(const Visitor& visit) const;

  // The first borrowing request of at most `free_bytes` that, if hard, needs at
  // most `slack_bytes` beyond its tenant's hard room, and that leaves the
  // claims of those before it whole.
  std::optional<RequestId> NextBorrowing(int64_t free_bytes,
                                         int64_t slack_bytes,
                                         absl::Span<const Claim> claims) const;
  // Calls `visit(request)` for the first request of each tenant that borrows,
  // those that are served first first, until it answers false. With a time:
  // only for those that may no longer be passed then.
  template <typename Visitor>
  void ForEachFront(const Visitor& visit, Instant now = Instant::Max()) const;

  // Whether the waiting request that claims is served before this one; a place
  // greater than all means one that arrives now.
  bool ComesBefore(const Claim& claim, TenantId tenant, uint64_t place,
                   const Standing& standing) const;

  struct Sum {
    uint64_t requests = 0;
    uint64_t bytes = 0;
  };
  const Sum& waiting() const { return waiting_; }
  Sum WaitingOf(TenantId tenant) const;
  // Calls `visit(request)` for the tenant's, the oldest first, those that came
  // after that place, until it answers false.
  template <typename Visitor>
  void ForEachOf(TenantId tenant, uint64_t after, const Visitor& visit) const;
  // Calls `visit(tenant, most, most_hard)` for each tenant that waits, in no
  // order: the bytes of its largest request, and of its largest hard one.
  template <typename Visitor>
  void ForEachTenant(const Visitor& visit) const;
  // Requests of other tenants that come before this tenant's. O(n).
  uint64_t WaitingBefore(TenantId tenant) const;

 private:
  // Where a tenant stands among those that borrow.
  struct Turn {
    double borrowed_per_weight = 0;
    uint64_t oldest_place = 0;
    TenantId tenant;

    friend bool operator<(const Turn& a, const Turn& b) {
      return std::tie(a.borrowed_per_weight, a.oldest_place) <
             std::tie(b.borrowed_per_weight, b.oldest_place);
    }
  };
  // Figures of the tree of borrowers.
  static constexpr size_t kLeastBytes = 0;
  static constexpr size_t kLeastHard = 1;  // beyond the hard room
  static constexpr size_t kPassableUntil = 2;
  using Borrowers = MinTree<Turn, 3>;

  // A tenant's waiting requests, and its keys in the trees below.
  struct Line : WaitLine {
    std::optional<Turn> within;    // in within_
    std::optional<Turn> turn;      // in borrowers_
    Borrowers::Figures figures{};  // its figures there
  };

  // The claim that the request would not leave whole; null: none.
  const Claim* FirstBroken(TenantId tenant, const Line& line,
                           const WaitLine::Waiter& waiter, int64_t free_bytes,
                           int64_t slack_bytes,
                           absl::Span<const Claim> claims) const;
  [[nodiscard]] const Line& LineOf(TenantId tenant) const {
    return MustFind(lines_, tenant, "queue of tenant");
  }
  static Turn TurnOf(TenantId tenant, const Line& line);
  void Refresh(TenantId tenant, Line& line);
  void RefreshWithin(TenantId tenant, Line& line);
  void RefreshTurn(TenantId tenant, Line& line);

  absl::flat_hash_map<TenantId, Line> lines_;
  // Tenants with a request within the guarantee; they have borrowed nothing.
  // Figure: the least bytes that one of its requests asks for.
  MinTree<Turn, 1> within_;
  // Tenants with a request that their limit does not hold back.
  Borrowers borrowers_;
  Sum waiting_;
};

template <typename Visitor>
void WaitQueue::ForEachWithinGuarantee(const Visitor& visit) const {
  within_.FirstWithin({WaitLine::kAny}, [&](const Turn& turn) {
    return LineOf(turn.tenant)
        .StopsWithinGuarantee(
            [&](const WaitLine::Waiter& waiter, uint64_t bytes) {
              return visit(turn.tenant, waiter.request, bytes);
            });
  });
}

template <typename Visitor>
void WaitQueue::ForEachFront(const Visitor& visit, Instant now) const {
  borrowers_.FirstWithin(
      {WaitLine::kAny, WaitLine::kAny, now.ns}, [&](const Turn& turn) {
        const WaitLine::Waiter* front = LineOf(turn.tenant).BorrowingFront();
        return front != nullptr && !visit(front->request);
      });
}

template <typename Visitor>
void WaitQueue::ForEachTenant(const Visitor& visit) const {
  for (const auto& [tenant, line] : lines_) {
    visit(tenant, line.MostBytes(), line.MostHardBytes());
  }
}

template <typename Visitor>
void WaitQueue::ForEachOf(TenantId tenant, uint64_t after,
                          const Visitor& visit) const {
  const auto line = lines_.find(tenant);
  if (line != lines_.end()) line->second.ForEachAfter(after, visit);
}

}  // namespace gmb::quota

#endif  // GMB_QUOTA_WAIT_QUEUE_H_
