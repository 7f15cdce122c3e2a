#ifndef GMB_CLIENT_CLI_COMMANDS_CALL_AND_PRINT_H_
#define GMB_CLIENT_CLI_COMMANDS_CALL_AND_PRINT_H_

#include <type_traits>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "client/cli/admin_client.h"
#include "client/cli/context.h"
#include "client/cli/text/json.h"

namespace gmb::cli {

// Most commands are this: one call of the Admin service, whose answer is
// printed as JSON, or by `print(answer, client)` for people.
template <typename Request, typename Response, typename Print>
absl::StatusOr<ExitCode> CallAndPrint(
    Context& context, AdminClient::Method<Request, Response> method,
    const std::type_identity_t<Request>& request, const Print& print,
    absl::Duration wait = absl::ZeroDuration()) {
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(context.socket_dir));
  GMB_ASSIGN_OR_RETURN(const Response answer, (client.*method)(request, wait));
  if (context.json) {
    context.PrintJson(ListToJson(answer));
  } else {
    print(answer, client);
  }
  return ExitCode::kOk;
}

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_CALL_AND_PRINT_H_
