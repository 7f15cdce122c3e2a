// Commands that do the same with several devices.
#include "client/cli/commands/each_device.h"

#include <utility>

#include "base/status_macros.h"
#include "client/cli/device_name.h"

namespace gmb::cli {

absl::StatusOr<ExitCode> OnEachDevice(
    Context& context, const std::string& name,
    absl::FunctionRef<absl::StatusOr<Json>(const AdminClient&,
                                           const std::string& uuid)>
        act) {
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(context.socket_dir));
  GMB_ASSIGN_OR_RETURN(const std::vector<std::string> uuids,
                       DevicesNamed(client, name));
  Json all = Json::array();
  for (const std::string& uuid : uuids) {
    GMB_ASSIGN_OR_RETURN(Json answer, act(client, uuid));
    if (name != "all") {
      if (context.json) context.PrintJson(answer);
      return ExitCode::kOk;
    }
    Json of_device = {{"device", uuid}};
    of_device.update(answer);
    all.push_back(std::move(of_device));
  }
  if (context.json) context.PrintJson(Json{{"devices", all}});
  return ExitCode::kOk;
}

}  // namespace gmb::cli
