#ifndef GMB_CLIENT_CLI_COMMANDS_LIST_AND_PRINT_H_
#define GMB_CLIENT_CLI_COMMANDS_LIST_AND_PRINT_H_

#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "client/cli/admin_client.h"
#include "client/cli/context.h"
#include "client/cli/text/json.h"
#include "client/cli/views/table.h"

namespace gmb::cli {

// A list, page by page: as one JSON document, or, for people, by
// `print(page, flow)` as the pages come. `keep(&page)` may shorten a page, and
// answers whether there is to be another.
template <typename Request, typename Response, typename Print, typename Keep>
absl::StatusOr<ExitCode> ListAndPrint(
    Context& context, AdminClient::Method<Request, Response> method,
    const std::type_identity_t<Request>& request, const Print& print,
    const Keep& keep) {
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(context.socket_dir));
  Response all;
  Table::Flow flow;
  const auto on_page = [&](Response&& page) {
    const bool more = keep(&page);
    if (context.json) {
      all.MergeFrom(page);
    } else {
      print(page, &flow);
    }
    return more && !context.out.fail();
  };
  GMB_RETURN_IF_ERROR(client.EachPage(method, request, on_page));
  if (context.json) context.PrintJson(ListToJson(all));
  return ExitCode::kOk;
}

template <typename Request, typename Response, typename Print>
absl::StatusOr<ExitCode> ListAndPrint(
    Context& context, AdminClient::Method<Request, Response> method,
    const std::type_identity_t<Request>& request, const Print& print) {
  return ListAndPrint(context, method, request, print,
                      [](Response*) { return true; });
}

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_LIST_AND_PRINT_H_
