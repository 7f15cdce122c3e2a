// For operators: the processes that use a GPU's memory past the broker.
#include "broker/server/outside_findings.h"

#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/devices.h"
#include "proto/amount_text.h"

namespace gmb::broker {
namespace {

// A context takes 0.51 to 0.53 GiB on an H200; libraries and kernels add to it.
constexpr uint64_t kLargeContextBytes = uint64_t{1} << 30;

using Names = std::map<int32_t, std::string>;

Names SessionsByPid(const Core& core) {
  Names names;
  v1::ListSessionsRequest request;
  do {
    const absl::StatusOr<v1::ListSessionsResponse> sessions =
        core.Sessions(request);
    if (!sessions.ok()) return names;
    for (const v1::SessionInfo& session : sessions->sessions()) {
      if (session.pid() == 0) continue;
      names[session.pid()] =
          absl::StrCat("tenant ", session.tenant(), ", session ", session.id());
    }
    request.set_page_token(sessions->next_page_token());
  } while (!request.page_token().empty());
  return names;
}

}  // namespace

void AddOutsideFindings(const Core& core, v1::DiagnoseResponse* response) {
  std::optional<Names> names;  // once there is somebody to be named
  const v1::GetStatusResponse status = core.Status();  // outlives the loop
  for (const v1::PoolStatus& pool : status.pools()) {
    if (pool.device().kind() == v1::DEVICE_KIND_HOST) continue;
    const absl::StatusOr<std::vector<device::ProcessUsage>> users =
        device::DeviceProcesses(pool.device().uuid());
    if (!users.ok()) continue;
    if (!names.has_value()) names = SessionsByPid(core);
    for (const device::ProcessUsage& user : *users) {
      if (user.pid == getpid()) continue;
      const auto name = names->find(user.pid);
      const bool large = user.used_bytes > kLargeContextBytes;
      v1::Finding* finding = response->add_findings();
      finding->set_severity(large ? v1::Finding::WARNING : v1::Finding::OK);
      finding->set_subject(pool.device().uuid());
      const bool outside = name == names->end();
      const std::string program =
          user.program.empty() ? "" : absl::StrCat(" ", user.program);
      finding->set_message(absl::StrCat(
          outside ? "outside, pid " : "process ", user.pid, program, " (",
          outside ? "no session" : name->second, ") holds ",
          proto::FormatBytes(user.used_bytes), " past the broker",
          large ? ": more than a CUDA context needs; it allocates by itself, "
                  "or keeps what it has released"
                : ", as a CUDA context does",
          outside ? "; start it with `gmb run`, and let it keep LD_PRELOAD and "
                    "GMB_* of its environment"
                  : ""));
    }
  }
}

}  // namespace gmb::broker
