// A forked child has no session: this knows that it is one.
#include "client/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace gmb::internal {
namespace {

// Counted by a handler rather than told by getpid(): in a new PID namespace a
// child can have its parent's number.
std::atomic<uint64_t> forks{0};
constexpr uint64_t kUnused = ~uint64_t{0};
std::atomic<uint64_t> first_used_at{kUnused};

void CountFork() { forks.fetch_add(1, std::memory_order_relaxed); }

uint64_t Generation() {
  static const int kRegistered = pthread_atfork(nullptr, nullptr, CountFork);
  static_cast<void>(kRegistered);
  return forks.load(std::memory_order_relaxed);
}

absl::Status ForkedError() {
  return absl::FailedPreconditionError(
      "gmb: this process was forked from one that uses gmb: sessions and "
      "leases stay with the "
      "parent; connect before any fork only in the process that keeps the "
      "memory, or exec");
}

}  // namespace

ForkGuard::ForkGuard() : generation_(Generation()) {
  uint64_t unused = kUnused;
  first_used_at.compare_exchange_strong(unused, generation_,
                                        std::memory_order_relaxed);
}

bool ForkGuard::InChild() const { return Generation() != generation_; }

absl::Status ForkGuard::Check() const {
  return InChild() ? ForkedError() : absl::OkStatus();
}

absl::Status ForkGuard::CheckFreshStart() {
  const uint64_t first = first_used_at.load(std::memory_order_relaxed);
  return first == kUnused || first == Generation() ? absl::OkStatus()
                                                   : ForkedError();
}

}  // namespace gmb::internal
