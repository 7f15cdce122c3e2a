#ifndef GMB_BROKER_FD_LIMIT_H_
#define GMB_BROKER_FD_LIMIT_H_

#include <cstdint>
#include <string>

namespace gmb::broker {

struct FdWishes {
  uint64_t max_handles = 0;  // slabs leased at once
  uint64_t max_sessions = 0;
  uint64_t kept_ready = 0;      // slabs held ahead of need
  uint64_t tenants = 0;         // that are known; two sockets each
  uint64_t fds_per_handle = 1;  // of a slab of the devices served
  // Handle socket, pidfd, stream, gRPC socket; with a keeper, what it is to have
  // too.
  uint64_t fds_per_session = 4;
};
struct FdPlan {
  uint64_t max_handles = 0;
  uint64_t max_sessions = 0;
  std::string warning;  // empty when the wishes fit; says what to do otherwise
};

// Fits the wishes into `limit` open files, keeping some for the broker itself.
// Sessions go first, up to half of what there is. Never below one of each.
[[nodiscard]] FdPlan FitIntoFdLimit(const FdWishes& wishes, uint64_t limit);

}  // namespace gmb::broker

#endif  // GMB_BROKER_FD_LIMIT_H_
