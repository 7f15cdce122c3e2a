// The demo: the tenants' processes, from their entrance to their end.
#include "client/cli/demo/cast.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/installed.h"

namespace gmb::cli {

absl::Status Cast::Enter(const std::string& tenant) {
  Leave(tenant);
  GMB_ASSIGN_OR_RETURN(
      ActorProcess actor,
      ActorProcess::Start(
          {.program = ThisProgram(),
           .socket_dir =
               absl::StrCat(parts_.broker->socket_dir(), "/tenants/", tenant),
           .tenant = tenant,
           .log_path = absl::StrCat(parts_.dir, "/", tenant, ".log"),
           .group = parts_.broker->pid(),
           .interrupt_fd = parts_.interrupt_fd}));
  actors_.emplace(tenant, std::move(actor));
  return absl::OkStatus();
}

std::vector<std::string> Cast::Tenants() const {
  std::vector<std::string> tenants;
  for (const auto& [tenant, actor] : actors_) tenants.push_back(tenant);
  return tenants;
}

absl::StatusOr<uint64_t> Cast::Verify() {
  for (auto& [tenant, actor] : actors_) {
    GMB_RETURN_IF_ERROR(actor.AskVerify());
  }
  uint64_t bytes = 0;
  for (auto& [tenant, actor] : actors_) {
    GMB_ASSIGN_OR_RETURN(const Json verified, actor.Await({"verified"}));
    bytes += verified.at("bytes").get<uint64_t>();
    ++verifications_;
  }
  verified_bytes_ += bytes;
  return bytes;
}

}  // namespace gmb::cli
