// The broker's start: how many handles and sessions its open files allow.
#include "broker/daemon/fd_setup.h"

#include <algorithm>

#include "base/status_macros.h"
#include "ipc/open_files.h"

namespace gmb::broker {

absl::StatusOr<FdPlan> PlanFds(const BrokerConfig& config,
                               const std::vector<PreparedPool>& pools,
                               size_t tenants) {
  FdWishes wishes{.max_handles = config.max_handles,
                  .max_sessions = config.max_sessions,
                  .tenants = tenants};
  uint64_t handles_possible = 0;
  for (const PreparedPool& pool : pools) {
    const SlabPool::Options& slabs = pool.options.slabs;
    const uint64_t bytes =
        std::max(pool.options.target_bytes, pool.options.largest_bytes);
    wishes.kept_ready += bytes / slabs.ready_slab_bytes +
                         slabs.max_ready_tails + slabs.max_returned_slabs;
    handles_possible +=
        bytes /
        std::max<uint64_t>(1, pool.options.worker->info().granularity_bytes);
    // The allocator of host memory keeps a memfd beside the exported one.
    if (pool.options.worker->info().kind == device::DeviceKind::kHost)
      wishes.fds_per_handle = 2;
  }
  // With a keeper this process has its fds too, so that another keeper can get
  // them: of a session the handle socket and the gate page, of a slab that was
  // adopted its handle.
  if (!config.keeper_socket.empty()) {
    wishes.fds_per_session += 2;
    ++wishes.fds_per_handle;
  }
  GMB_ASSIGN_OR_RETURN(const uint64_t limit, ipc::RaiseFdLimit());
  // More than the pools have slabs for can never be asked for.
  wishes.max_handles =
      std::clamp<uint64_t>(handles_possible, 1, config.max_handles);
  FdPlan plan = FitIntoFdLimit(wishes, limit);
  if (plan.max_handles == wishes.max_handles)
    plan.max_handles = config.max_handles;
  return plan;
}

}  // namespace gmb::broker
