#ifndef GMB_CLIENT_FORK_GUARD_H_
#define GMB_CLIENT_FORK_GUARD_H_

#include <cstdint>

#include "absl/status/status.h"

namespace gmb::internal {

// Knows whether this process was forked since the guard was made. A child of
// fork() has the parent's memory, but none of its threads, and locks in any
// state: nothing of a session may be touched there. Thread-safe and lock-free.
class ForkGuard {
 public:
  ForkGuard();

  [[nodiscard]] bool InChild() const;
  // FAILED_PRECONDITION in a child.
  [[nodiscard]] absl::Status Check() const;

  // FAILED_PRECONDITION when an ancestor of this process made a guard before
  // the fork: gRPC does not work in such a child, and a new session would hang.
  [[nodiscard]] static absl::Status CheckFreshStart();

 private:
  uint64_t generation_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_FORK_GUARD_H_
