// `gmb debug bundle`: all that is to be known of a broker, in one file.
#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "client/cli/admin_client.h"
#include "client/cli/commands/arguments.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/findings.h"
#include "client/cli/version_text.h"
#include "client/session/socket_dir.h"

namespace gmb::cli {
namespace {

constexpr int kMostAudited = 1000;

// Mode 0600, and never over a file that is there: it names users and programs.
absl::Status WriteNew(const std::string& path, const std::string& text) {
  const auto failed = [&] {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot write ", path, ": ", std::generic_category().message(errno)));
  };
  const base::UniqueFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return failed();
  for (size_t at = 0; at < text.size();) {
    const ssize_t written =
        write(file.get(), text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const absl::Status why = failed();
      (void)unlink(path.c_str());
      return why;
    }
    at += static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

Json Machine() {
  utsname name{};
  if (uname(&name) != 0) return Json::object();
  return {{"system", name.sysname},
          {"release", name.release},
          {"machine", name.machine},
          {"cpus", sysconf(_SC_NPROCESSORS_ONLN)},
          {"uid", geteuid()}};
}

// Puts what is asked for under its name, or why there is nothing.
class Bundle {
 public:
  explicit Bundle(Json* json) : json_(json) {
    (*json_)["errors"] = Json::object();
  }

  void Add(const std::string& name, const absl::StatusOr<Json>& part) {
    if (part.ok()) {
      (*json_)[name] = *part;
    } else {
      (*json_)["errors"][name] = std::string(part.status().message());
    }
  }

 private:
  Json* const json_;
};

template <typename Response>
absl::StatusOr<Json> AsJson(const absl::StatusOr<Response>& answer) {
  if (!answer.ok()) return answer.status();
  return ListToJson(*answer);
}

absl::StatusOr<Json> Waiting(const AdminClient& client,
                             const v1::ListTenantsResponse& tenants) {
  Json all = Json::array();
  for (const v1::Tenant& tenant : tenants.tenants()) {
    bool waits = false;
    for (const v1::TenantPool& pool : tenant.pools())
      waits = waits || pool.waiting() > 0;
    if (!waits) continue;
    v1::ExplainRequest request;
    request.set_tenant(tenant.name());
    GMB_ASSIGN_OR_RETURN(const v1::ExplainResponse why,
                         client.Explain(request));
    all.push_back(ListToJson(why));
  }
  return all;
}

void AskAll(const AdminClient& client, Bundle* bundle) {
  bundle->Add("status", AsJson(client.GetStatus(v1::GetStatusRequest())));
  bundle->Add("diagnosis", AsJson(client.Diagnose(v1::DiagnoseRequest())));
  const absl::StatusOr<v1::ListTenantsResponse> tenants =
      client.ListTenants(v1::ListTenantsRequest());
  bundle->Add("tenants", AsJson(tenants));
  bundle->Add("sessions",
              AsJson(client.ListSessions(v1::ListSessionsRequest())));
  bundle->Add("leases", AsJson(client.ListLeases(v1::ListLeasesRequest())));
  if (tenants.ok()) bundle->Add("waiting", Waiting(client, *tenants));
  v1::ListAuditRequest audit;
  audit.set_page_size(kMostAudited);
  bundle->Add("audit", AsJson(client.ListAudit(audit)));
  bundle->Add("usage", AsJson(client.ListUsage(v1::ListUsageRequest())));
  const absl::StatusOr<std::string> metrics = client.GetMetrics();
  bundle->Add("metrics",
              metrics.ok() ? absl::StatusOr<Json>(*metrics) : metrics.status());
}

Json Collect(const Context& context, absl::Time now) {
  const std::string dir = internal::ResolveSocketDir(context.socket_dir);
  Json json;
  json["made_at"] =
      absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone());
  json["gmb"] = VersionText();
  json["socket_dir"] = dir;
  json["machine"] = Machine();
  Bundle bundle(&json);
  Findings findings = CheckSockets(dir);
  for (const Findings& more :
       {CheckDriver(internal::ProbeDevices(), HasDriverNode()), CheckLimits()})
    findings.insert(findings.end(), more.begin(), more.end());
  v1::DiagnoseResponse here;
  here.mutable_findings()->Add(findings.begin(), findings.end());
  bundle.Add("here", ToJson(here));
  const absl::StatusOr<AdminClient> client =
      AdminClient::Connect(context.socket_dir);
  if (client.ok()) {
    AskAll(*client, &bundle);
  } else {
    bundle.Add("broker", client.status());
  }
  return json;
}

absl::StatusOr<ExitCode> WriteBundle(Context& context, std::string file) {
  const absl::Time now = absl::Now();
  if (file.empty()) {
    file = absl::StrCat(
        "gmb-debug-",
        absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()), ".json");
  }
  const Json bundle = Collect(context, now);
  const ExitCode code =
      bundle["errors"].empty() ? ExitCode::kOk : ExitCode::kFailed;
  if (file == "-") {
    context.PrintJson(bundle);
    return code;
  }
  GMB_RETURN_IF_ERROR(WriteNew(file, PrettyJson(bundle) + "\n"));
  if (context.json) {
    context.PrintJson(Json{{"file", file}, {"errors", bundle["errors"]}});
  } else {
    context.out << "wrote " << file
                << ": names of tenants, programs and users are in it, tokens "
                   "and contents are not\n";
    for (const auto& [part, why] : bundle["errors"].items()) {
      context.out << "without " << part << ": " << why.get<std::string>()
                  << '\n';
    }
  }
  return code;
}

}  // namespace

void AddDebugCommands(CLI::App* app, Action* chosen) {
  CLI::App* const debug = app->add_subcommand(
      "debug", "Collect what somebody needs who looks for a fault");
  debug->require_subcommand(0, 1);
  debug->footer("Example: gmb debug bundle");
  CLI::App* const bundle = debug->add_subcommand(
      "bundle", "Write all that is to be known of the broker into a file");
  const auto file = std::make_shared<std::string>();
  AddTextOption(bundle, "--file", file.get(),
                "A new one [gmb-debug-TIME.json]; -: standard output")
      ->type_name("FILE");
  bundle->footer(
      "One JSON document: status, tenants, sessions, leases, who waits and "
      "why, "
      "the audit log's\n"
      "last 1,000 records, metrics, and what `gmb doctor` finds. Tokens and "
      "contents of memory are\n"
      "not in it. Without a broker it has what can be seen from here; the exit "
      "code is 1 then.\n\n"
      "Example: gmb debug bundle --file broker.json");
  bundle->callback([chosen, file] {
    *chosen = [file](Context& context) { return WriteBundle(context, *file); };
  });
}

}  // namespace gmb::cli
