// A lease that other processes of the tenant are to map (`gmb run`).
#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "client/lease/range_hooks.h"
#include "client/no_throw.h"
#include "client/session/session.h"
#include "client/wire.h"
#include "gmb/client.h"
#include "ipc/random.h"

namespace gmb::internal {
namespace {

absl::Status TakeOnlyFd(Granted& granted, int* slab_fd) {
  std::vector<device::ShareableHandle> handles = granted.slabs.TakeHandles();
  auto* const fd = handles.size() == 1
                       ? std::get_if<base::UniqueFd>(handles.data())
                       : nullptr;
  if (fd == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("gmb: a handle of several slabs cannot be handed out as "
                     "one file descriptor: slabs=",
                     handles.size()));
  }
  *slab_fd = fd->release();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExportedLease> ExportLease(const Client& client,
                                          const Lease& lease, int* slab_fd) {
  return NoThrow([&]() -> absl::StatusOr<ExportedLease> {
    ExportedLease exported{};
    GMB_ASSIGN_OR_RETURN(const std::string key,
                         ipc::RandomToken(exported.key.size()));
    Session& session = SessionOf(client);
    GMB_RETURN_IF_ERROR(session.CheckAlive());
    GMB_ASSIGN_OR_RETURN(Granted granted,
                         session.leases().Export(lease.id(), key));
    const std::string& its = granted.grant.export_key();
    if (its.size() != exported.key.size())
      return ProtocolError("an export without a key");
    exported.lease_id = granted.grant.lease_id();
    std::copy(its.begin(), its.end(), exported.key.begin());
    if (slab_fd != nullptr) GMB_RETURN_IF_ERROR(TakeOnlyFd(granted, slab_fd));
    return exported;
  });
}

}  // namespace gmb::internal
