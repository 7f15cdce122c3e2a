// `gmb doctor`: says what is wrong here and in the broker, and what to do.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/admin_client.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/findings.h"
#include "client/cli/commands/keeper_findings.h"
#include "client/cli/commands/orphan_findings.h"
#include "client/cli/own_quota.h"
#include "client/cli/text/text.h"
#include "client/cli/views/quota_view.h"
#include "client/session/socket_dir.h"
#include "gmb/error.h"

namespace gmb::cli {
namespace {

void Append(const Findings& more, Findings* findings) {
  findings->insert(findings->end(), more.begin(), more.end());
}

std::set<std::string> GpusOf(const v1::GetStatusResponse& status) {
  std::set<std::string> gpus;
  for (const v1::PoolStatus& pool : status.pools()) {
    if (pool.device().kind() != v1::DEVICE_KIND_HOST)
      gpus.insert(pool.device().uuid());
  }
  return gpus;
}

// The broker's answer, and its own findings. `*served`, the GPUs that it
// serves, is left alone when it cannot be asked.
absl::StatusOr<Findings> AskBroker(
    const std::string& socket_dir,
    std::optional<std::set<std::string>>* served) {
  GMB_ASSIGN_OR_RETURN(const AdminClient client,
                       AdminClient::Connect(socket_dir));
  GMB_ASSIGN_OR_RETURN(const v1::GetStatusResponse status,
                       client.GetStatus(v1::GetStatusRequest()));
  *served = GpusOf(status);
  Findings findings = {
      MakeFinding(v1::Finding::OK, "broker",
                  absl::StrCat("gmbd ", status.broker_version(), " answers, ",
                               status.pools_size(),
                               status.pools_size() == 1 ? " pool" : " pools"))};
  GMB_ASSIGN_OR_RETURN(const v1::DiagnoseResponse diagnosis,
                       client.Diagnose(v1::DiagnoseRequest()));
  findings.insert(findings.end(), diagnosis.findings().begin(),
                  diagnosis.findings().end());
  return findings;
}

// The same in a tenant's own directory, as one of its processes: the rest is
// for operators.
absl::StatusOr<Findings> AskAsTenant(const std::string& socket_dir) {
  GMB_ASSIGN_OR_RETURN(const v1::QuotaReport report,
                       AskOwnQuota(socket_dir, "", ClientOptions()));
  Findings findings = {MakeFinding(
      v1::Finding::OK, "broker",
      absl::StrCat("gmbd answers; this directory is tenant ", report.tenant(),
                   "'s own: `gmb quota` shows what it has"))};
  for (const v1::QuotaView& view : report.quotas()) {
    const std::vector<std::string> reasons = Reasons(view);
    for (const std::string& reason : reasons) {
      findings.push_back(
          MakeFinding(v1::Finding::WARNING, view.device(), reason));
    }
    if (!reasons.empty()) continue;
    findings.push_back(MakeFinding(
        v1::Finding::OK, view.device(),
        absl::StrCat(SizeText(view.obtainable_bytes()),
                     " can be had at once, all up to the tenant's limit")));
  }
  return findings;
}

// Why the broker was not asked. That only operators may is no problem.
v1::Finding NotAsked(const absl::Status& status) {
  const bool no_operator =
      absl::IsPermissionDenied(status) && !GetErrorDetail(status).has_value();
  return MakeFinding(no_operator ? v1::Finding::WARNING : v1::Finding::PROBLEM,
                     "broker",
                     absl::StrCat(no_operator ? "cannot ask the broker: " : "",
                                  status.message()));
}

absl::StatusOr<ExitCode> Doctor(Context& context, const std::string& keeper) {
  const std::string dir = internal::ResolveSocketDir(context.socket_dir);
  Findings findings = CheckSockets(dir);
  std::optional<std::set<std::string>> served;
  const absl::StatusOr<Findings> of_broker =
      internal::IsTenantDirectory(dir) ? AskAsTenant(dir)
                                       : AskBroker(context.socket_dir, &served);
  const bool gpu_expected =
      served.has_value() ? !served->empty() : HasDriverNode();
  // Nobody is there to serve any. One that is and may not be asked might.
  if (absl::IsUnavailable(of_broker.status())) served.emplace();
  Append(of_broker.ok() ? *of_broker : Findings{NotAsked(of_broker.status())},
         &findings);
  Append(CheckKeeper(keeper), &findings);
  const internal::DeviceProbe probe = internal::ProbeDevices();
  Append(CheckDriver(probe, gpu_expected), &findings);
  if (served.has_value()) {
    Append(CheckOrphans(internal::ProbeUses(probe), *served, keeper),
           &findings);
  }
  Append(CheckLimits(), &findings);

  if (context.json) {
    v1::DiagnoseResponse all;
    all.mutable_findings()->Add(findings.begin(), findings.end());
    context.PrintJson(ToJson(all));
  } else {
    PrintFindings(findings, context.terminal, context.out);
  }
  return AnyProblem(findings) ? ExitCode::kFailed : ExitCode::kOk;
}

}  // namespace

void AddDoctorCommand(CLI::App* app, Action* chosen) {
  CLI::App* const command =
      app->add_subcommand("doctor",
                          "Find what is wrong with sockets, permissions, "
                          "limits, driver and broker");
  const auto keeper = std::make_shared<std::string>();
  AddTextOption(command, "--keeper", keeper.get(),
                "The keeper's socket; without it the usual one, if it answers")
      ->type_name("PATH");
  command->footer(
      "Every finding says what to do. Exit code 1 when there is a problem.\n\n"
      "Example: gmb doctor");
  command->callback([chosen, keeper] {
    *chosen = [keeper](Context& context) { return Doctor(context, *keeper); };
  });
}

}  // namespace gmb::cli
