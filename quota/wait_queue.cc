// Requests that wait for a lease, in order: finds the next one that fits.
#include "quota/wait_queue.h"

#include <algorithm>
#include <limits>

#include "quota/must_find.h"

namespace gmb::quota {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

int64_t Signed(uint64_t bytes) { return static_cast<int64_t>(bytes); }

}  // namespace

WaitQueue::Waiters::Figures WaitQueue::FiguresOf(const Ask& ask) {
  const int64_t bytes = Signed(ask.bytes);
  return {bytes,
          ask.restore ? kNone : bytes,
          ask.restore ? bytes : kNone,
          ask.hard ? bytes : kNone,
          0,
          -bytes,
          ask.hard ? -bytes : 0};
}

WaitQueue::Waiters::Figures WaitQueue::LimitBounds(const Standing& standing) {
  return {kAny,
          Signed(standing.limit_left_bytes),
          Signed(standing.restore_left_bytes),
          kAny,
          kAny,
          kAny,
          kAny};
}

void WaitQueue::Add(TenantId tenant, uint64_t place, RequestId request,
                    const Ask& ask, const Standing& standing) {
  Line& line = lines_[tenant];
  line.standing = standing;
  line.waiters.Insert({.place = place, .request = request}, FiguresOf(ask));
  line.bytes += ask.bytes;
  ++waiting_.requests;
  waiting_.bytes += ask.bytes;
  Refresh(tenant, line);
}

void WaitQueue::Remove(TenantId tenant, uint64_t place, uint64_t bytes,
                       const Standing& standing) {
  const auto it = lines_.find(tenant);
  Line& line = it->second;
  line.standing = standing;
  line.waiters.Erase({.place = place, .request = {}});
  line.passable_until.erase(place);
  line.bytes -= bytes;
  --waiting_.requests;
  waiting_.bytes -= bytes;
  Refresh(tenant, line);
  if (line.waiters.empty()) lines_.erase(it);
}

void WaitQueue::Update(TenantId tenant, const Standing& standing) {
  const auto it = lines_.find(tenant);
  if (it == lines_.end() || it->second.standing == standing) return;
  it->second.standing = standing;
  Refresh(tenant, it->second);
}

void WaitQueue::SetPassableUntil(TenantId tenant, uint64_t place,
                                 Instant until) {
  Line& line = MustFind(lines_, tenant, "queue of tenant");
  line.passable_until[place] = until;
  RefreshTurn(tenant, line);
}

void WaitQueue::SetLackingElsewhere(TenantId tenant, uint64_t place,
                                    bool lacking) {
  Line& line = MustFind(lines_, tenant, "queue of tenant");
  const Waiter key{.place = place, .request = {}};
  Waiters::Figures figures = line.waiters.FiguresOf(key);
  const int64_t figure = lacking ? 1 : 0;
  if (figures[kElsewhere] == figure) return;
  figures[kElsewhere] = figure;
  line.waiters.Update(key, figures);
}

std::optional<RequestId> WaitQueue::NextWithinGuarantee(
    int64_t free_bytes) const {
  const Waiter* found = nullptr;
  within_.FirstWithin({free_bytes}, [&](const Turn& turn) {
    found = FrontWithin(MustFind(lines_, turn.tenant, "queue of tenant"),
                        free_bytes);
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
    const Waiter* waiter = nullptr;
    const Turn* fit = borrowers_.FirstWithin(
        {bytes, beyond_bytes, kAny}, [&](const Turn& turn) {
          const Line& line = MustFind(lines_, turn.tenant, "queue of tenant");
          Waiters::Figures bounds = LimitBounds(line.standing);
          bounds[kBytes] = bytes;
          bounds[kHardBytes] =
              beyond_bytes + Signed(line.standing.hard_room_bytes);
          bounds[kElsewhere] = 0;
          waiter = line.waiters.FirstWithin(bounds);
          return waiter != nullptr;
        });
    if (fit == nullptr) return std::nullopt;
    const Claim* broken = FirstBroken(
        fit->tenant, MustFind(lines_, fit->tenant, "queue of tenant"), *waiter,
        free_bytes, slack_bytes, claims);
    if (broken == nullptr) return waiter->request;
    // Nothing before that claim fits, and all behind it must leave it whole.
    bytes = std::min(bytes, free_bytes - Signed(broken->bytes));
    if (broken->slack_bytes > 0) {
      beyond_bytes = std::clamp<int64_t>(
          slack_bytes - Signed(broken->slack_bytes), 0, beyond_bytes);
    }
  }
}

const Claim* WaitQueue::FirstBroken(TenantId tenant, const Line& line,
                                    const Waiter& waiter, int64_t free_bytes,
                                    int64_t slack_bytes,
                                    absl::Span<const Claim> claims) const {
  if (claims.empty()) return nullptr;
  const Waiters::Figures& figures = line.waiters.FiguresOf(waiter);
  const int64_t beyond_bytes =
      figures[kHardBytes] == kNone
          ? 0
          : figures[kHardBytes] - Signed(line.standing.hard_room_bytes);
  for (const Claim& claim : claims) {
    const bool broken =
        ComesBefore(claim, tenant, waiter.place, line.standing) &&
        LackingBeside(claim, figures[kBytes], beyond_bytes, free_bytes,
                      slack_bytes) > 0;
    if (broken) return &claim;
  }
  return nullptr;
}

bool WaitQueue::ComesBefore(const Claim& claim, TenantId tenant, uint64_t place,
                            const Standing& standing) const {
  if (claim.tenant == tenant) return claim.place < place;
  const Turn owner =
      TurnOf(claim.tenant, MustFind(lines_, claim.tenant, "queue of tenant"));
  const auto it = lines_.find(tenant);
  if (it != lines_.end()) return owner < TurnOf(tenant, it->second);
  // It would be the youngest among equals.
  return owner.borrowed_per_weight <= standing.borrowed_per_weight;
}

WaitQueue::Sum WaitQueue::WaitingOf(TenantId tenant) const {
  const auto it = lines_.find(tenant);
  if (it == lines_.end()) return {};
  return {.requests = it->second.waiters.size(), .bytes = it->second.bytes};
}

uint64_t WaitQueue::WaitingBefore(TenantId tenant) const {
  const auto it = lines_.find(tenant);
  if (it == lines_.end()) return 0;
  const Turn turn = TurnOf(tenant, it->second);
  uint64_t before = 0;
  borrowers_.ForEach([&](const Turn& other, const Borrowers::Figures&) {
    if (other < turn)
      before +=
          MustFind(lines_, other.tenant, "queue of tenant").waiters.size();
  });
  return before;
}

const WaitQueue::Waiter* WaitQueue::Front(const Line& line) {
  return line.waiters.FirstWithin(LimitBounds(line.standing));
}

const WaitQueue::Waiter* WaitQueue::BorrowingFront(const Line& line) {
  Waiters::Figures bounds = LimitBounds(line.standing);
  bounds[kMinusBytes] = -Signed(line.standing.guarantee_left_bytes) - 1;
  return line.waiters.FirstWithin(bounds);
}

const WaitQueue::Waiter* WaitQueue::FrontWithin(const Line& line,
                                                int64_t free_bytes) {
  Waiters::Figures bounds = LimitBounds(line.standing);
  bounds[kBytes] =
      std::min(free_bytes, Signed(line.standing.guarantee_left_bytes));
  bounds[kElsewhere] = 0;
  return line.waiters.FirstWithin(bounds);
}

WaitQueue::Turn WaitQueue::TurnOf(TenantId tenant, const Line& line) {
  return {.borrowed_per_weight = line.standing.borrowed_per_weight,
          .oldest_place = line.waiters.First().place,
          .tenant = tenant};
}

void WaitQueue::Refresh(TenantId tenant, Line& line) {
  RefreshWithin(tenant, line);
  RefreshTurn(tenant, line);
}

void WaitQueue::RefreshWithin(TenantId tenant, Line& line) {
  if (line.within) within_.Erase(*line.within);
  line.within.reset();
  if (line.waiters.empty()) return;
  Waiters::Figures bounds = LimitBounds(line.standing);
  bounds[kBytes] = Signed(line.standing.guarantee_left_bytes);
  if (line.waiters.FirstWithin(bounds) == nullptr) return;
  line.within = TurnOf(tenant, line);
  within_.Insert(*line.within, {line.waiters.Min()});
}

void WaitQueue::RefreshTurn(TenantId tenant, Line& line) {
  const Waiter* front = line.waiters.empty() ? nullptr : Front(line);
  if (front == nullptr) {
    if (line.turn) borrowers_.Erase(*line.turn);
    line.turn.reset();
    return;
  }
  Instant until = Instant::Max();
  if (const Waiter* borrowing = BorrowingFront(line)) {
    const auto found = line.passable_until.find(borrowing->place);
    if (found != line.passable_until.end()) until = found->second;
  }
  const int64_t least_hard = line.waiters.Min(kHardBytes);
  const Borrowers::Figures figures = {
      line.waiters.Min(kBytes),
      least_hard == kNone ? kNone
                          : least_hard - Signed(line.standing.hard_room_bytes),
      until.ns};
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
