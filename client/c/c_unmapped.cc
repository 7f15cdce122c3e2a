// Leases that the preload library of `gmb run` maps itself.
#include <memory>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "client/c/c_error.h"
#include "client/c/c_handles.h"
#include "client/c/c_options.h"
#include "client/lease/range_hooks.h"
#include "gmb/c_api.h"

GMB_EXPORT gmb_error* gmb_internal_acquire_unmapped(
    gmb_client* client, uint64_t bytes, const gmb_acquire_options* options,
    const gmb::internal::RangeHooks* hooks, gmb_lease** lease) {
  *lease = nullptr;
  return gmb::internal::CEdge([&]() -> absl::Status {
    GMB_ASSIGN_OR_RETURN(const gmb::AcquireOptions read,
                         gmb::internal::FromC(options));
    auto made = std::make_unique<gmb_lease>();
    GMB_ASSIGN_OR_RETURN(
        made->lease,
        gmb::internal::AcquireUnmapped(*client->client, bytes, read, *hooks));
    *lease = made.release();
    return absl::OkStatus();
  });
}

GMB_EXPORT void gmb_internal_release_soon(gmb_lease* lease) { delete lease; }
