#ifndef GMB_BROKER_MACHINE_FACT_H_
#define GMB_BROKER_MACHINE_FACT_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "broker/machine/lease.h"
#include "quota/effect.h"
#include "quota/units.h"

// Something that has happened within a turn and concerns others. It is queued
// behind what it follows from; Machine::Settle says who reacts to it.
namespace gmb::broker {

// A step of the lease is over, or one of its users has left: who waits for it
// looks anew.
struct LeaseSettled {
  quota::LeaseId lease;
};

// The lease could not be brought back; or one of its users, if named, could not
// map it.
struct MoveFailed {
  quota::LeaseId lease;
  absl::Status why;
  std::optional<uint64_t> session = {};
};

// A silent keeper kept the lease's slabs from being made again: it is worth
// another try in a while.
struct RestorePutOff {
  quota::LeaseId lease;
};

// The session has given the lease back.
struct LeaseLeft {
  uint64_t session = 0;
  quota::LeaseId lease;
};

// The memory of these sessions can be taken by force from now on: what they wait
// for is judged anew.
struct LendsAgain {
  std::vector<uint64_t> sessions;
};

struct SessionEnded {
  // Its group, without it.
  std::vector<uint64_t> members;
  // Shared leases that it was attached to.
  std::vector<quota::LeaseId> left;
  // The engine's Restore that stood for it.
  std::optional<quota::RequestId> restoring;
};

// The device has made the slabs of a lease, or not all of them.
struct SlabsMade {
  quota::LeaseId lease;
  std::vector<uint64_t> not_created;  // their sizes
  absl::Status status;
};

// The last copy of a lease that has ended is over.
struct CopiesOver {
  quota::LeaseId lease;
};

// The slabs of what was granted could not be made: the grant is to be given
// back.
struct NotMade {
  quota::LeaseId lease;
  PendingAcquire request;
  absl::Status status;
  absl::Status given_up;  // why nobody is to get it any more; else OK
};

using Fact =
    std::variant<LeaseSettled, MoveFailed, RestorePutOff, LeaseLeft, LendsAgain,
                 SessionEnded, SlabsMade, CopiesOver, NotMade>;

// One piece of a turn's work: an answer of the engine, or a fact.
using Work = std::variant<quota::Effect, Fact>;

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_FACT_H_
