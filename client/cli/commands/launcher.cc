// `gmb run`: becomes the program, with the preload library in it.
#include "client/cli/commands/launcher.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/commands/preloadable.h"
#include "client/cli/commands/run_terms.h"
#include "client/cli/error_report.h"
#include "client/cli/installed.h"
#include "client/cli/tenant_identity.h"
#include "client/cli/tenant_token.h"
#include "client/session/socket_dir.h"
#include "gmb/client.h"
#include "gmb/error.h"

namespace gmb::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kLibrary[] = "libgmb_preload.so";

absl::StatusOr<std::string> FindPreload(const std::string& asked) {
  const std::string found =
      asked.empty() ? FindInstalled(kLibrary, {LibFromBin(), "../lib", "."})
                    : asked;
  if (found.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        kLibrary,
        " is not where gmb was installed: name it with --preload (a build for "
        "another processor than x86-64 has none)"));
  }
  std::error_code error;
  const std::string path = fs::absolute(found, error).string();
  if (!fs::is_regular_file(path, error)) {
    return absl::NotFoundError(absl::StrCat("no such preload library: ", path));
  }
  // The dynamic linker splits LD_PRELOAD at both and knows no quoting.
  if (path.find_first_of(": ") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "LD_PRELOAD cannot name a path with a space or a colon: put the "
        "library elsewhere and name it with --preload: ",
        path));
  }
  return path;
}

// A broker that answers and takes this process for the tenant; says on which
// terms.
absl::Status CheckBroker(const Context& context, const RunOptions& options) {
  ClientOptions session;
  session.program = "gmb run";
  if (!options.tenant_token_file.empty()) {
    GMB_ASSIGN_OR_RETURN(session.tenant_token,
                         ReadTenantToken(options.tenant_token_file));
  }
  GMB_ASSIGN_OR_RETURN(
      const std::unique_ptr<Client> client,
      ConnectAsTenant(context.socket_dir, options.tenant, std::move(session)));
  if (options.quiet || context.json) return absl::OkStatus();
  if (const auto terms = RunTerms(*client, options); terms.ok())
    context.err << *terms << std::endl;
  return absl::OkStatus();
}

// No broker has said who the program is, and the next one will not ask for its token.
void WarnOfATokenInVain(const Context& context, const RunOptions& options) {
  if (options.tenant_token_file.empty()) return;
  const std::string tenant =
      TenantOfDirectory(SharedSocketDir(context.socket_dir));
  if (tenant.empty()) return;
  ReportWarning(
      absl::FailedPreconditionError(absl::StrCat(
          "only the socket directory of tenant ", tenant,
          " is here, and there a token has no say: name the broker's own "
          "directory with --socket-dir")),
      absl::StrCat("the program is a client of ", tenant,
                   " once a broker answers"),
      context);
}

// The environment of the program. The command's own is left alone: gRPC's
// threads, which outlive the session, may read it.
class Environment {
 public:
  Environment() {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      const size_t equals = text.find('=');
      if (equals != std::string::npos) {
        variables_[text.substr(0, equals)] = text.substr(equals + 1);
      }
    }
  }

  std::string& operator[](const std::string& name) { return variables_[name]; }
  void Remove(const std::string& name) { variables_.erase(name); }

  // "NAME=VALUE" each.
  [[nodiscard]] std::vector<std::string> Entries() const {
    std::vector<std::string> entries;
    for (const auto& [name, value] : variables_) {
      entries.push_back(absl::StrCat(name, "=", value));
    }
    return entries;
  }

 private:
  std::map<std::string, std::string> variables_;
};

// Whether gmb was started with it, rather than having set it itself.
bool WasInherited(const std::string& name) {
  std::ifstream inherited("/proc/self/environ", std::ios::binary);
  std::string entry;
  while (std::getline(inherited, entry, '\0')) {
    if (absl::StartsWith(entry, name + "=")) return true;
  }
  return false;
}

Environment EnvironmentFor(const Context& context, const RunOptions& options,
                           const std::string& preload) {
  Environment environment;
  const bool by_token = !options.tenant_token_file.empty();
  const std::string dir =
      by_token ? SharedSocketDir(context.socket_dir)
               : TenantSocketDir(context.socket_dir, options.tenant);
  std::error_code error;
  environment["GMB_SOCKET_DIR"] =
      fs::absolute(internal::ResolveSocketDir(dir), error).string();
  if (by_token) {
    environment["GMB_RUN_TOKEN_FILE"] =
        fs::absolute(options.tenant_token_file, error).string();
  } else {
    environment.Remove("GMB_RUN_TOKEN_FILE");  // of a `gmb run` around this one
  }
  if (options.wait.has_value()) {
    environment["GMB_RUN_WAIT"] =
        absl::StrCat(absl::ToInt64Milliseconds(*options.wait), "ms");
  }
  if (options.native_without_broker.has_value()) {
    environment["GMB_RUN_FALLBACK"] =
        *options.native_without_broker ? "native" : "fail";
  }
  if (options.park_after.has_value()) {
    environment["GMB_RUN_PARK_AFTER"] =
        absl::StrCat(absl::ToInt64Milliseconds(*options.park_after), "ms");
  }
  if (!options.vmm.empty()) environment["GMB_RUN_VMM"] = options.vmm;
  if (!options.group.empty()) environment["GMB_RUN_GROUP"] = options.group;
  if (!options.park.empty()) environment["GMB_RUN_PARK"] = options.park;
  if (options.verbose) environment["GMB_RUN_VERBOSE"] = "1";
  std::string& preloaded = environment["LD_PRELOAD"];
  preloaded =
      preloaded.empty() ? preload : absl::StrCat(preload, ":", preloaded);
  // main.cc silences the command's gRPC, not the program's.
  if (!WasInherited("GRPC_VERBOSITY")) environment.Remove("GRPC_VERBOSITY");
  return environment;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

ExitCode Become(Context& context, const std::vector<std::string>& program,
                const std::vector<std::string>& environment) {
  execvpe(program.front().c_str(), Pointers(program).data(),
          Pointers(environment).data());
  const int why = errno;
  // The exit code is the shells', not the error's.
  ReportError(
      absl::ErrnoToStatus(why, absl::StrCat("cannot run ", program.front())),
      context);
  return why == ENOENT ? ExitCode::kNoProgram : ExitCode::kCannotStart;
}

}  // namespace

absl::StatusOr<ExitCode> LaunchProgram(Context& context,
                                       const RunOptions& options) {
  const absl::Status broker = CheckBroker(context, options);
  // A broker that refuses is there, also when it drains.
  const bool may_do_without =
      options.native_without_broker.value_or(false) &&
      !GetErrorDetail(broker).has_value() &&
      (absl::IsUnavailable(broker) || absl::IsDeadlineExceeded(broker));
  if (!broker.ok() && !may_do_without) return broker;
  GMB_ASSIGN_OR_RETURN(const std::string preload, FindPreload(options.preload));
  if (!broker.ok()) {
    ReportWarning(broker, "going on with the driver's own memory", context);
    WarnOfATokenInVain(context, options);
  }
  const Preloadable found = LookAt(options.program.front());
  if (found.kind == Preloadable::Kind::kBreaks) {
    ReportError(absl::FailedPreconditionError(found.why), context);
    return ExitCode::kCannotStart;
  }
  if (found.kind == Preloadable::Kind::kPassesBy) {
    ReportWarning(absl::FailedPreconditionError(found.why),
                  "running it all the same", context);
  }
  const Environment environment = EnvironmentFor(context, options, preload);
  context.out.flush();
  return Become(context, options.program, environment.Entries());
}

}  // namespace gmb::cli
