// The C interface: a program under `gmb run` that uses gmb itself.
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "client/c/c_error.h"
#include "client/c/c_handles.h"
#include "client/c/c_options.h"
#include "client/gate/bias_calls.h"

GMB_EXPORT gmb_error* gmb_internal_join(const gmb_client* client,
                                        const gmb_client_options* options,
                                        gmb_client** joined) {
  *joined = nullptr;
  return gmb::internal::CEdge([&]() -> absl::Status {
    GMB_ASSIGN_OR_RETURN(const gmb::ClientOptions read,
                         gmb::internal::FromC(options));
    GMB_ASSIGN_OR_RETURN(std::unique_ptr<gmb::Client> made,
                         gmb::internal::Join(*client->client, read));
    if (made != nullptr) *joined = new gmb_client{std::move(made)};
    return absl::OkStatus();
  });
}
