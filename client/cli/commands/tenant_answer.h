#ifndef GMB_CLIENT_CLI_COMMANDS_TENANT_ANSWER_H_
#define GMB_CLIENT_CLI_COMMANDS_TENANT_ANSWER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/cli/admin_client.h"
#include "client/cli/confirm.h"
#include "client/cli/context.h"

namespace gmb::cli {

// The bytes that a change of a tenant would take from running processes, by the
// broker's answer to a dry run; empty: none.
[[nodiscard]] std::string TakesText(const v1::SetTenantResponse& preview);

// The answer to a change, or to a dry run of one, for people.
void PrintTenantAnswer(const Context& context, bool dry_run,
                       const v1::SetTenantResponse& answer);

// Asks the broker what the request would take, and then the operator. OK also
// when it takes nothing.
template <typename Request>
absl::Status ConfirmTaking(
    const Context& context,
    AdminClient::Method<Request, v1::SetTenantResponse> method,
    Request request) {
  request.set_dry_run(true);
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(context.socket_dir));
  GMB_ASSIGN_OR_RETURN(const v1::SetTenantResponse preview,
                       (client.*method)(request, absl::ZeroDuration()));
  const std::string takes = TakesText(preview);
  return takes.empty() ? absl::OkStatus() : Confirm(context, takes);
}

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_TENANT_ANSWER_H_
