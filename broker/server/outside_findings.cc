// For operators: the processes that use a GPU's memory past the broker.
#include "broker/server/outside_findings.h"

#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/devices.h"
#include "proto/amount_text.h"

namespace gmb::broker {
namespace {

// A context takes 0.51 to 0.53 GiB on an H200; libraries and kernels add to it.
constexpr uint64_t kLargeContextBytes = uint64_t{1} << 30;

std::map<int32_t, std::string> SessionsByPid(const Core& core) {
  std::map<int32_t, std::string> names;
  const absl::StatusOr<v1::ListSessionsResponse> sessions = core.Sessions("");
  if (!sessions.ok()) return names;
  for (const v1::SessionInfo& session : sessions->sessions()) {
    if (session.pid() == 0) continue;
    names[session.pid()] =
        absl::StrCat("tenant ", session.tenant(), ", session ", session.id());
  }
  return names;
}

}  // namespace

void AddOutsideFindings(const Core& core, v1::DiagnoseResponse* response) {
  const std::map<int32_t, std::string> names = SessionsByPid(core);
  const v1::GetStatusResponse status = core.Status();  // outlives the loop
  for (const v1::PoolStatus& pool : status.pools()) {
    if (pool.device().kind() == v1::DEVICE_KIND_HOST) continue;
    const absl::StatusOr<std::vector<device::ProcessUsage>> users =
        device::DeviceProcesses(pool.device().uuid());
    if (!users.ok()) continue;
    for (const device::ProcessUsage& user : *users) {
      if (user.pid == getpid()) continue;
      auto name = names.find(user.pid);
      const bool large = user.used_bytes > kLargeContextBytes;
      v1::Finding* finding = response->add_findings();
      finding->set_severity(large ? v1::Finding::WARNING : v1::Finding::OK);
      finding->set_subject(pool.device().uuid());
      finding->set_message(absl::StrCat(
          "process ", user.pid, " (",
          name == names.end() ? "no session" : name->second, ") holds ",
          proto::FormatBytes(user.used_bytes), " past the broker",
          large ? ": more than a CUDA context needs; it allocates by itself, "
                  "or keeps what it has released"
                : ", as a CUDA context does"));
    }
  }
}

}  // namespace gmb::broker
