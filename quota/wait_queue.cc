#include "quota/wait_queue.h"

#include <algorithm>
#include <limits>

namespace gmb::quota {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

int64_t Signed(uint64_t bytes) { return static_cast<int64_t>(bytes); }

}  // namespace

WaitQueue::Waiters::Figures WaitQueue::FiguresOf(const Ask& ask) {
  const int64_t bytes = Signed(ask.bytes);
  return {bytes, ask.restore ? kNone : bytes, ask.restore ? bytes : kNone,
          ask.hard ? bytes : kNone, 0};
}

WaitQueue::Waiters::Figures WaitQueue::LimitBounds(const Standing& standing) {
  return {kAny, Signed(standing.limit_left_bytes),
          Signed(standing.restore_left_bytes), kAny, kAny};
}

void WaitQueue::Add(TenantId tenant, uint64_t place, RequestId request,
                    const Ask& ask, const Standing& standing) {
  Line& line = lines_[tenant];
  line.standing = standing;
  line.waiters.Insert({.place = place, .request = request}, FiguresOf(ask));
  line.bytes += ask.bytes;
  ++waiting_;
  waiting_bytes_ += ask.bytes;
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
  --waiting_;
  waiting_bytes_ -= bytes;
  Refresh(tenant, line);
  if (line.waiters.empty()) lines_.erase(it);
}

void WaitQueue::Update(TenantId tenant, const Standing& standing) {
  const auto it = lines_.find(tenant);
  if (it == lines_.end() || it->second.standing == standing) return;
  it->second.standing = standing;
  Refresh(tenant, it->second);
}

void WaitQueue::SetLackingElsewhere(TenantId tenant, uint64_t place,
                                    bool lacking) {
  Line& line = lines_.at(tenant);
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
    found = FrontWithin(lines_.at(turn.tenant), free_bytes);
    return found != nullptr;
  });
  if (found == nullptr) return std::nullopt;
  return found->request;
}

std::optional<RequestId> WaitQueue::Head() const {
  if (borrowers_.empty()) return std::nullopt;
  return Front(lines_.at(borrowers_.First().tenant))->request;
}

Instant WaitQueue::HeadPassableUntil() const {
  const Line& line = lines_.at(borrowers_.First().tenant);
  const auto until = line.passable_until.find(Front(line)->place);
  return until == line.passable_until.end() ? Instant::Max() : until->second;
}

std::optional<RequestId> WaitQueue::NextBorrowing(uint64_t free_bytes,
                                                  uint64_t slack_bytes,
                                                  Instant now,
                                                  Nanoseconds pass_window) {
  if (borrowers_.empty()) return std::nullopt;
  const auto oldest_fit = [&](const Line& line) {
    Waiters::Figures bounds = LimitBounds(line.standing);
    bounds[kBytes] = Signed(free_bytes);
    bounds[kHardBytes] = Signed(slack_bytes + line.standing.hard_room_bytes);
    bounds[kElsewhere] = 0;
    return line.waiters.FirstWithin(bounds);
  };
  const TenantId head = borrowers_.First().tenant;
  Line& head_line = lines_.at(head);
  const Waiter& head_front = *Front(head_line);
  const Waiter* head_fit = oldest_fit(head_line);
  if (head_fit != nullptr && head_fit->place == head_front.place) {
    return head_front.request;
  }
  if (head_line.passable_until.try_emplace(head_front.place, now + pass_window)
          .second) {
    RefreshTurn(head, head_line);
  }

  const Waiter* waiter = nullptr;
  const Turn* fit = borrowers_.FirstWithin(
      {Signed(free_bytes), Signed(slack_bytes), kAny}, [&](const Turn& turn) {
        waiter = oldest_fit(lines_.at(turn.tenant));
        return waiter != nullptr;
      });
  if (fit == nullptr) return std::nullopt;
  const Turn* wall = borrowers_.FirstAtMost(now.ns, kPassableUntil);
  if (wall != nullptr && *wall < *fit) return std::nullopt;
  // The wall may be this tenant's own older request.
  const bool own_wall = wall != nullptr && !(*fit < *wall) &&
                        Front(lines_.at(fit->tenant))->place < waiter->place;
  if (own_wall) return std::nullopt;
  return waiter->request;
}

bool WaitQueue::MayPass(TenantId tenant, const Standing& standing,
                        Instant now) const {
  const Turn* wall = borrowers_.FirstAtMost(now.ns, kPassableUntil);
  if (wall == nullptr) return true;
  const auto it = lines_.find(tenant);
  if (it != lines_.end()) return TurnOf(tenant, it->second) < *wall;
  // It would be the youngest among equals.
  return standing.borrowed_per_weight < wall->borrowed_per_weight;
}

uint64_t WaitQueue::WaitingOf(TenantId tenant) const {
  const auto it = lines_.find(tenant);
  return it == lines_.end() ? 0 : it->second.waiters.size();
}

uint64_t WaitQueue::WaitingBytesOf(TenantId tenant) const {
  const auto it = lines_.find(tenant);
  return it == lines_.end() ? 0 : it->second.bytes;
}

uint64_t WaitQueue::WaitingBefore(TenantId tenant) const {
  const auto it = lines_.find(tenant);
  if (it == lines_.end()) return 0;
  const Turn turn = TurnOf(tenant, it->second);
  uint64_t before = 0;
  borrowers_.ForEach([&](const Turn& other, const Borrowers::Figures&) {
    if (other < turn) before += lines_.at(other.tenant).waiters.size();
  });
  return before;
}

const WaitQueue::Waiter* WaitQueue::Front(const Line& line) {
  return line.waiters.FirstWithin(LimitBounds(line.standing));
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
  const auto window = line.passable_until.find(front->place);
  const Instant until =
      window == line.passable_until.end() ? Instant::Max() : window->second;
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
