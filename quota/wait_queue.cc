// Requests that wait for a lease, in order: finds the next one that fits.
#include "quota/wait_queue.h"

#include <algorithm>

#include "quota/must_find.h"

namespace gmb::quota {

void WaitQueue::Add(TenantId tenant, uint64_t place, RequestId request,
                    const Ask& ask, const Standing& standing) {
  Line& line = lines_[tenant];
  line.SetStanding(standing);
  line.Add({.place = place, .request = request}, ask);
  ++waiting_.requests;
  waiting_.bytes += ask.bytes;
  Refresh(tenant, line);
}

void WaitQueue::Remove(TenantId tenant, uint64_t place, uint64_t bytes,
                       const Standing& standing) {
  const auto it = lines_.find(tenant);
  Line& line = it->second;
  line.SetStanding(standing);
  line.Remove(place, bytes);
  --waiting_.requests;
  waiting_.bytes -= bytes;
  Refresh(tenant, line);
  if (line.empty()) lines_.erase(it);
}

void WaitQueue::Update(TenantId tenant, const Standing& standing) {
  const auto it = lines_.find(tenant);
  if (it == lines_.end() || it->second.standing() == standing) return;
  it->second.SetStanding(standing);
  Refresh(tenant, it->second);
}

void WaitQueue::SetPassableUntil(TenantId tenant, uint64_t place,
                                 Instant until) {
  Line& line = MustFind(lines_, tenant, "queue of tenant");
  line.SetPassableUntil(place, until);
  RefreshTurn(tenant, line);
}

void WaitQueue::SetLackingElsewhere(TenantId tenant, uint64_t place,
                                    bool lacking) {
  MustFind(lines_, tenant, "queue of tenant")
      .SetLackingElsewhere(place, lacking);
}

std::optional<RequestId> WaitQueue::NextWithinGuarantee(
    int64_t free_bytes) const {
  const WaitLine::Waiter* found = nullptr;
  within_.FirstWithin({free_bytes}, [&](const Turn& turn) {
    found = LineOf(turn.tenant).FrontWithin(free_bytes);
    return found != nullptr;
  });
  if (found == nullptr) return std::nullopt;
  return found->request;
}

std::optional<RequestId> WaitQueue::NextBorrowing(
    int64_t free_bytes, int64_t slack_bytes,
    absl::Span<const Claim> claims) const {
  // Bytes that are left to be taken: less and less, as claims are met.
  int64_t bytes = free_bytes, beyond_bytes = slack_bytes;
  while (true) {
    const WaitLine::Waiter* waiter = nullptr;
    const Turn* fit = borrowers_.FirstWithin(
        {bytes, beyond_bytes, WaitLine::kAny}, [&](const Turn& turn) {
          waiter = LineOf(turn.tenant).FrontFitting(bytes, beyond_bytes);
          return waiter != nullptr;
        });
    if (fit == nullptr) return std::nullopt;
    const Claim* broken = FirstBroken(fit->tenant, LineOf(fit->tenant), *waiter,
                                      free_bytes, slack_bytes, claims);
    if (broken == nullptr) return waiter->request;
    // Nothing before that claim fits, and all behind it must leave it whole.
    bytes = std::min(bytes, free_bytes - static_cast<int64_t>(broken->bytes));
    if (broken->slack_bytes > 0) {
      beyond_bytes = std::clamp<int64_t>(
          slack_bytes - static_cast<int64_t>(broken->slack_bytes), 0,
          beyond_bytes);
    }
  }
}

const Claim* WaitQueue::FirstBroken(TenantId tenant, const Line& line,
                                    const WaitLine::Waiter& waiter,
                                    int64_t free_bytes, int64_t slack_bytes,
                                    absl::Span<const Claim> claims) const {
  if (claims.empty()) return nullptr;
  const WaitLine::Need need = line.NeedOf(waiter);
  for (const Claim& claim : claims) {
    const bool broken =
        ComesBefore(claim, tenant, waiter.place, line.standing()) &&
        LackingBeside(claim, need.bytes, need.beyond_bytes, free_bytes,
                      slack_bytes) > 0;
    if (broken) return &claim;
  }
  return nullptr;
}

bool WaitQueue::ComesBefore(const Claim& claim, TenantId tenant, uint64_t place,
                            const Standing& standing) const {
  if (claim.tenant == tenant) return claim.place < place;
  const Turn owner = TurnOf(claim.tenant, LineOf(claim.tenant));
  const auto it = lines_.find(tenant);
  if (it != lines_.end()) return owner < TurnOf(tenant, it->second);
  // It would be the youngest among equals.
  return owner.borrowed_per_weight <= standing.borrowed_per_weight;
}

WaitQueue::Sum WaitQueue::WaitingOf(TenantId tenant) const {
  const auto it = lines_.find(tenant);
  if (it == lines_.end()) return {};
  return {.requests = it->second.size(), .bytes = it->second.bytes()};
}

uint64_t WaitQueue::WaitingBefore(TenantId tenant) const {
  const auto it = lines_.find(tenant);
  if (it == lines_.end()) return 0;
  const Turn turn = TurnOf(tenant, it->second);
  uint64_t before = 0;
  borrowers_.ForEach([&](const Turn& other, const Borrowers::Figures&) {
    if (other < turn) before += LineOf(other.tenant).size();
  });
  return before;
}

WaitQueue::Turn WaitQueue::TurnOf(TenantId tenant, const Line& line) {
  return {.borrowed_per_weight = line.standing().borrowed_per_weight,
          .oldest_place = line.OldestPlace(),
          .tenant = tenant};
}

void WaitQueue::Refresh(TenantId tenant, Line& line) {
  RefreshWithin(tenant, line);
  RefreshTurn(tenant, line);
}

void WaitQueue::RefreshWithin(TenantId tenant, Line& line) {
  if (line.within) within_.Erase(*line.within);
  line.within.reset();
  if (line.empty() || !line.AnyWithinGuarantee()) return;
  line.within = TurnOf(tenant, line);
  within_.Insert(*line.within, {line.LeastBytes()});
}

void WaitQueue::RefreshTurn(TenantId tenant, Line& line) {
  const WaitLine::Waiter* borrowing = line.BorrowingFront();
  if (borrowing == nullptr && line.Front() == nullptr) {
    if (line.turn) borrowers_.Erase(*line.turn);
    line.turn.reset();
    return;
  }
  const Instant until = borrowing == nullptr
                            ? Instant::Max()
                            : line.PassableUntil(borrowing->place);
  const Borrowers::Figures figures = {line.LeastBytes(),
                                      line.LeastBeyondBytes(), until.ns};
  const Turn turn = TurnOf(tenant, line);
  const bool moved = !line.turn || turn < *line.turn || *line.turn < turn;
  if (!moved) {
    if (figures != line.figures) borrowers_.Update(turn, figures);
  } else {
    if (line.turn) borrowers_.Erase(*line.turn);
    borrowers_.Insert(turn, figures);
    line.turn = turn;
  }
  line.figures = figures;
}

}  // namespace gmb::quota
