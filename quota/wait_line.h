// One tenant's requests that wait for bytes of one pool, the oldest first, and
// the first of them that fits.
#ifndef GMB_QUOTA_WAIT_LINE_H_
#define GMB_QUOTA_WAIT_LINE_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "quota/min_tree.h"
#include "quota/units.h"

namespace gmb::quota {

// The part of a request that concerns one pool.
struct Ask {
  uint64_t bytes = 0;
  bool hard = true;      // could not be taken back by force
  bool restore = false;  // was leased before, and does not count again
};

// A tenant's place in a queue depends on this.
struct Standing {
  uint64_t guarantee_left_bytes =
      0;  // requests up to this are within the guarantee
  uint64_t limit_left_bytes = 0;    // Acquires above this are held back
  uint64_t restore_left_bytes = 0;  // Restores above this are
  uint64_t hard_room_bytes = 0;     // hard bytes that its claim covers already
  double borrowed_per_weight = 0;

  friend bool operator==(const Standing& a, const Standing& b) = default;
};

class WaitLine {
 public:
  struct Waiter {
    uint64_t place = 0;  // in the order of arrival
    RequestId request;

    friend bool operator<(const Waiter& a, const Waiter& b) {
      return a.place < b.place;
    }
  };
  // A bound that nothing is above, and a figure that is above no bound.
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

  void Add(const Waiter& waiter, const Ask& ask) {
    waiters_.Insert(waiter, FiguresOf(ask));
    bytes_ += ask.bytes;
  }
  void Remove(uint64_t place, uint64_t bytes) {
    waiters_.Erase({.place = place, .request = {}});
    passable_until_.erase(place);
    bytes_ -= bytes;
  }
  void SetStanding(const Standing& standing) { standing_ = standing; }
  // See WaitQueue.
  void SetPassableUntil(uint64_t place, Instant until) {
    passable_until_[place] = until;
  }
  void SetLackingElsewhere(uint64_t place, bool lacking);
  // Max: it was not said of this one.
  [[nodiscard]] Instant PassableUntil(uint64_t place) const {
    const auto found = passable_until_.find(place);
    return found == passable_until_.end() ? Instant::Max() : found->second;
  }

  [[nodiscard]] const Standing& standing() const { return standing_; }
  [[nodiscard]] bool empty() const { return waiters_.empty(); }
  [[nodiscard]] uint64_t size() const { return waiters_.size(); }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t OldestPlace() const { return waiters_.First().place; }
  // Of one that waits: its bytes, and of a hard one those that its tenant's hard
  // room does not cover; 0 or less: none.
  struct Need {
    int64_t bytes = 0;
    int64_t beyond_bytes = 0;
  };
  [[nodiscard]] Need NeedOf(const Waiter& waiter) const;
  // The least that one asks for, and the least beyond_bytes; kNone: some are
  // soft.
  [[nodiscard]] int64_t LeastBytes() const { return waiters_.Min(kBytes); }
  [[nodiscard]] int64_t LeastBeyondBytes() const {
    const int64_t least_hard = waiters_.Min(kHardBytes);
    return least_hard == kNone
               ? kNone
               : least_hard - static_cast<int64_t>(standing_.hard_room_bytes);
  }
  // The most, and the most of a hard one; 0: all are soft.
  [[nodiscard]] uint64_t MostBytes() const {
    return static_cast<uint64_t>(-waiters_.Min(kMinusBytes));
  }
  [[nodiscard]] uint64_t MostHardBytes() const {
    return static_cast<uint64_t>(-waiters_.Min(kMinusHardBytes));
  }

  // The oldest request that the tenant's limit does not hold back. Null: none,
  // as below.
  [[nodiscard]] const Waiter* Front() const;
  // The oldest of these that is above the guarantee.
  [[nodiscard]] const Waiter* BorrowingFront() const;
  // The oldest that is within the guarantee and has its bytes.
  [[nodiscard]] const Waiter* FrontWithin(int64_t free_bytes) const;
  // The oldest of at most so many bytes that, if hard, takes at most
  // `slack_bytes` beyond the hard room.
  [[nodiscard]] const Waiter* FrontFitting(int64_t free_bytes,
                                           int64_t slack_bytes) const;
  // Whether the guarantee covers a request that the limit does not hold back.
  [[nodiscard]] bool AnyWithinGuarantee() const;
  // Calls `visit(waiter, bytes)` for those that the guarantee covers together,
  // until it answers false; whether it did.
  template <typename Visitor>
  bool StopsWithinGuarantee(const Visitor& visit) const;
  // Calls `visit(request)` for those that came after that place, until it
  // answers false.
  template <typename Visitor>
  void ForEachAfter(uint64_t place, const Visitor& visit) const {
    waiters_.ForEachAfter(
        Waiter{.place = place, .request = {}},
        [&](const Waiter& waiter) { return visit(waiter.request); });
  }

 private:
  // Figures of a waiting request: it can be served when none is above what is
  // left. Where a figure says nothing of a request it is below every bound.
  enum Figure : size_t {
    kBytes,           // against what is free
    kAcquireBytes,    // against the limit
    kRestoreBytes,    // against the limit without what is evicted
    kHardBytes,       // against hard room and slack
    kElsewhere,       // 1: another pool lacks its bytes
    kMinusBytes,      // against the guarantee: of those above it
    kMinusHardBytes,  // bounds nothing: whose least is the largest hard one
    kFigures
  };
  using Waiters = MinTree<Waiter, kFigures>;

  static Waiters::Figures FiguresOf(const Ask& ask);
  // Bounds that only the tenant's limit sets.
  [[nodiscard]] Waiters::Figures LimitBounds() const {
    return {kAny,
            static_cast<int64_t>(standing_.limit_left_bytes),
            static_cast<int64_t>(standing_.restore_left_bytes),
            kAny,
            kAny,
            kAny,
            kAny};
  }

  Standing standing_;
  Waiters waiters_;
  uint64_t bytes_ = 0;
  absl::flat_hash_map<uint64_t, Instant>
      passable_until_;  // by place; most have none
};

template <typename Visitor>
bool WaitLine::StopsWithinGuarantee(const Visitor& visit) const {
  uint64_t left_bytes = standing_.guarantee_left_bytes;
  Waiters::Figures bounds = LimitBounds();
  bounds[kBytes] = static_cast<int64_t>(left_bytes);
  const auto stops = [&](const Waiter& waiter) {
    const auto bytes =
        static_cast<uint64_t>(waiters_.FiguresOf(waiter)[kBytes]);
    if (bytes > left_bytes) return false;
    left_bytes -= bytes;
    return !visit(waiter, bytes);
  };
  return waiters_.FirstWithin(bounds, stops) != nullptr;
}

}  // namespace gmb::quota

#endif  // GMB_QUOTA_WAIT_LINE_H_
