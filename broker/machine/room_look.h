#ifndef GMB_BROKER_MACHINE_ROOM_LOOK_H_
#define GMB_BROKER_MACHINE_ROOM_LOOK_H_

#include <cstdint>
#include <optional>

#include "absl/container/btree_map.h"
#include "broker/machine/lease.h"
#include "quota/units.h"

namespace gmb::broker {

// When room in the host pool has come free, Acquires that wait are looked at one
// after the other, some at a time: what had no room may have it now. So are they
// when more sessions lend again than are looked at at once.
//
// A value, part of State.
class RoomLook {
 public:
  using Requests = absl::btree_map<quota::RequestId, PendingAcquire>;

  // All that wait now are looked at from here on. Those that are left of an
  // earlier look come first, so that none is forgotten where room comes and goes.
  void Begin();
  [[nodiscard]] bool under_way() const { return under_way_; }
  // The next one; none: the look is over.
  [[nodiscard]] std::optional<quota::RequestId> Next(const Requests& waiting);

  // `gains`: HostBooks::gains, as it is.
  [[nodiscard]] bool IsNews(uint64_t gains) const { return gains != gains_; }
  void Notice(uint64_t gains);

  // None are looked at before.
  [[nodiscard]] quota::Instant not_before() const { return not_before_; }
  void Postpone(quota::Instant until) { not_before_ = until; }

 private:
  uint64_t gains_ = 0;
  bool under_way_ = false;
  quota::RequestId next_{};
  quota::RequestId
      from_{};  // where the look began: it goes on at the first one
  bool went_round_ = false;
  quota::Instant not_before_{};
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_ROOM_LOOK_H_
