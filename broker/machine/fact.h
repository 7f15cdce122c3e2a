#ifndef GMB_BROKER_MACHINE_FACT_H_
#define GMB_BROKER_MACHINE_FACT_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "quota/effect.h"
#include "quota/units.h"

// What has happened within a turn and others have to look at. It is queued
// behind what it follows from; Machine::Settle says who reacts to it.
namespace gmb::broker {

// A step of the lease is over, or one of its users has left: who waits for it
// looks anew.
struct LeaseSettled {
  quota::LeaseId lease;
};

// The lease could not be brought back, or not be mapped by one of its users.
struct MoveFailed {
  quota::LeaseId lease;
  absl::Status why;
};

// The session has given the lease back.
struct LeaseLeft {
  uint64_t session = 0;
  quota::LeaseId lease;
};

struct SessionEnded {
  // Its group, without it.
  std::vector<uint64_t> members;
  // Shared leases that it was attached to.
  std::vector<quota::LeaseId> left;
  // The engine's Restore that stood for it.
  std::optional<quota::RequestId> restoring;
};

using Fact = std::variant<LeaseSettled, MoveFailed, LeaseLeft, SessionEnded>;

// One piece of a turn's work: an answer of the engine, or a fact.
using Work = std::variant<quota::Effect, Fact>;

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_FACT_H_
