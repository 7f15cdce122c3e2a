// The preload library of `gmb run`: leases that it maps itself, and a release of
// its own.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "client/c/c_error.h"
#include "client/c/c_handles.h"
#include "client/c/c_options.h"
#include "client/lease/range_hooks.h"
#include "client/no_throw.h"
#include "gmb/c_api.h"

GMB_EXPORT gmb_error* gmb_internal_acquire_unmapped(
    gmb_client* client, uint64_t bytes, const gmb_acquire_options* options,
    uint64_t asked, const gmb::internal::RangeHooks* hooks, gmb_lease** lease) {
  *lease = nullptr;
  return gmb::internal::CEdge([&]() -> absl::Status {
    GMB_ASSIGN_OR_RETURN(const gmb::AcquireOptions read,
                         gmb::internal::FromC(options));
    auto made = std::make_unique<gmb_lease>();
    GMB_ASSIGN_OR_RETURN(made->lease,
                         gmb::internal::AcquireUnmapped(*client->client, bytes,
                                                        read, asked, *hooks));
    *lease = made.release();
    return absl::OkStatus();
  });
}

GMB_EXPORT size_t gmb_internal_ask_ahead(gmb_client* client, uint64_t bytes,
                                         const gmb_acquire_options* options,
                                         uint64_t* asked, size_t count) {
  size_t made = 0;
  gmb::internal::NoThrow([&]() -> absl::Status {
    GMB_ASSIGN_OR_RETURN(const gmb::AcquireOptions read,
                         gmb::internal::FromC(options));
    const std::vector<uint64_t> numbers =
        gmb::internal::AskAhead(*client->client, bytes, read, count);
    std::copy(numbers.begin(), numbers.end(), asked);
    made = numbers.size();
    return absl::OkStatus();
  }).IgnoreError();
  return made;
}

GMB_EXPORT void gmb_internal_forget_ahead(gmb_client* client, uint64_t asked) {
  gmb::internal::NoThrow([&] {
    gmb::internal::ForgetAhead(*client->client, asked);
    return absl::OkStatus();
  }).IgnoreError();
}

GMB_EXPORT gmb_error* gmb_internal_release_idle(gmb_lease* lease) {
  const std::unique_ptr<gmb_lease> owned(lease);
  return gmb::internal::CEdge(
      [&] { return gmb::internal::ReleaseIdle(std::move(owned->lease)); });
}

GMB_EXPORT gmb_error* gmb_internal_export(
    gmb_client* client, gmb_lease* lease,
    gmb::internal::ExportedLease* exported, int* slab_fd) {
  return gmb::internal::CEdge([&]() -> absl::Status {
    GMB_ASSIGN_OR_RETURN(
        *exported,
        gmb::internal::ExportLease(*client->client, lease->lease, slab_fd));
    return absl::OkStatus();
  });
}

GMB_EXPORT gmb_error* gmb_internal_attach_exported(
    gmb_client* client, const gmb::internal::ExportedLease* exported,
    const char* device, const gmb::internal::RangeHooks* hooks,
    gmb_lease** lease) {
  *lease = nullptr;
  return gmb::internal::CEdge([&]() -> absl::Status {
    auto made = std::make_unique<gmb_lease>();
    GMB_ASSIGN_OR_RETURN(
        made->lease, gmb::internal::AttachExported(*client->client, *exported,
                                                   device, *hooks));
    *lease = made.release();
    return absl::OkStatus();
  });
}
