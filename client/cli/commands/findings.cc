// `gmb doctor`: looks at sockets, permissions, limits and the driver.
#include "client/cli/commands/findings.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/text/text.h"
#include "client/session/socket_dir.h"

namespace gmb::cli {
namespace {

constexpr v1::Finding::Severity kOk = v1::Finding::OK;
constexpr v1::Finding::Severity kWarning = v1::Finding::WARNING;
constexpr v1::Finding::Severity kProblem = v1::Finding::PROBLEM;
// One handle frame carries up to 253; the rest is the program's own.
constexpr rlim_t kEnoughDescriptors = 1024;

std::string OwnerText(const struct stat& info) {
  return absl::StrFormat("uid %d, gid %d, mode %04o", info.st_uid, info.st_gid,
                         info.st_mode & 07777);
}

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

v1::Finding CheckDirectory(const std::string& dir, const struct stat& info) {
  if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
    return MakeFinding(
        kProblem, "sockets",
        absl::StrCat("everybody may replace the sockets in ", dir, " (",
                     OwnerText(info), "): chmod 0755 ", dir));
  }
  return MakeFinding(kOk, "sockets",
                     absl::StrCat(dir, " is there (", OwnerText(info), ")"));
}

v1::Finding CheckSocket(const std::string& path, const std::string& purpose) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    const std::string what_to_do =
        errno == EACCES
            ? "run as a user who may enter its directory"
            : "start gmbd with this socket directory, or name the right one";
    return MakeFinding(kProblem, "sockets",
                       absl::StrCat("no socket for ", purpose, " at ", path,
                                    " (", ErrnoText(errno), "): ", what_to_do));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return MakeFinding(
        kProblem, "sockets",
        absl::StrCat(path, " is no socket: remove it and restart gmbd"));
  }
  if (access(path.c_str(), W_OK) != 0) {
    return MakeFinding(
        kProblem, "permissions",
        absl::StrCat("this user (uid ", geteuid(),
                     ") may not use the socket for ", purpose, ", ", path, " (",
                     OwnerText(info), "): run as its owner or join its group"));
  }
  return MakeFinding(kOk, "sockets",
                     absl::StrCat("socket for ", purpose, ": ", path));
}

v1::Finding CheckAdminDirectory(const std::string& admin) {
  struct stat info {};
  if (stat(admin.c_str(), &info) != 0) {
    return MakeFinding(
        kProblem, "permissions",
        absl::StrCat("no directory for operators, ", admin, " (",
                     ErrnoText(errno),
                     "): start gmbd with this socket directory"));
  }
  if ((info.st_mode & S_IXOTH) != 0) {
    return MakeFinding(
        kProblem, "permissions",
        absl::StrCat("every user of this machine is an operator, ", admin, " (",
                     OwnerText(info), "): chmod 0750 ", admin));
  }
  return MakeFinding(kOk, "permissions",
                     absl::StrCat("operators are those who may enter ", admin,
                                  " (", OwnerText(info), ")"));
}

// Operators' sockets, as far as this user may see them: that of the tenants is
// all that other users need.
Findings CheckOperators(const std::string& socket_dir) {
  const std::string admin = socket_dir + "/admin";
  Findings findings = {CheckAdminDirectory(admin)};
  if (eaccess(admin.c_str(), X_OK) != 0 && errno == EACCES) {
    findings.push_back(MakeFinding(
        kWarning, "permissions",
        absl::StrCat("cannot see the operators' sockets: this user (uid ",
                     geteuid(), ") is no operator: run as the owner of ", admin,
                     " or in its group to have them looked at")));
    return findings;
  }
  findings.push_back(
      CheckSocket(admin + "/handle.sock", "operators' greetings"));
  findings.push_back(CheckSocket(admin + "/gmb.sock", "operators' gRPC"));
  return findings;
}

std::string GpuList(const internal::DeviceProbe& probe) {
  std::string list;
  for (const Device& gpu : probe.gpus) {
    absl::StrAppend(&list, list.empty() ? "" : "; ", gpu.uuid, " ", gpu.name,
                    " ", SizeText(gpu.total_bytes));
  }
  return list;
}

std::pair<std::string, Tone> SeverityText(v1::Finding::Severity severity) {
  switch (severity) {
    case v1::Finding::OK:
      return {"ok", Tone::kGood};
    case v1::Finding::WARNING:
      return {"warning", Tone::kWarning};
    case v1::Finding::PROBLEM:
      return {"problem", Tone::kBad};
    default:
      return {"?", Tone::kWarning};
  }
}

}  // namespace

v1::Finding MakeFinding(v1::Finding::Severity severity, std::string subject,
                        std::string message) {
  v1::Finding finding;
  finding.set_severity(severity);
  finding.set_subject(std::move(subject));
  finding.set_message(std::move(message));
  return finding;
}

Findings CheckSockets(const std::string& socket_dir) {
  struct stat info {};
  if (stat(socket_dir.c_str(), &info) != 0) {
    return {MakeFinding(
        kProblem, "sockets",
        absl::StrCat("cannot look at the socket directory ", socket_dir, " (",
                     ErrnoText(errno), "): start gmbd with --socket-dir ",
                     socket_dir, ", or set GMB_SOCKET_DIR to its directory"))};
  }
  if (!S_ISDIR(info.st_mode)) {
    return {MakeFinding(
        kProblem, "sockets",
        absl::StrCat(socket_dir,
                     " is not a directory: name the broker's socket "
                     "directory with --socket-dir or GMB_SOCKET_DIR"))};
  }
  Findings findings = {
      CheckDirectory(socket_dir, info),
      CheckSocket(socket_dir + "/handle.sock", "tenants' handles"),
      CheckSocket(socket_dir + "/gmb.sock", "tenants' gRPC")};
  // It has no operators' sockets, and its users need none.
  if (internal::IsTenantDirectory(socket_dir)) return findings;
  const Findings of_operators = CheckOperators(socket_dir);
  findings.insert(findings.end(), of_operators.begin(), of_operators.end());
  return findings;
}

Findings CheckLimits() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  if (limit.rlim_cur < kEnoughDescriptors) {
    return {MakeFinding(
        kWarning, "limits",
        absl::StrCat("a process started here may open ", limit.rlim_cur,
                     " files, and a large lease arrives as up to 253 at once: "
                     "raise it with `ulimit -n ",
                     kEnoughDescriptors, "`"))};
  }
  return {MakeFinding(kOk, "limits",
                      absl::StrCat("a process started here may open ",
                                   limit.rlim_cur, " files"))};
}

bool HasDriverNode() { return access("/dev/nvidiactl", F_OK) == 0; }

Findings CheckDriver(const internal::DeviceProbe& probe, bool gpu_expected) {
  const v1::Finding::Severity lacking = gpu_expected            ? kProblem
                                        : probe.machine_has_gpu ? kWarning
                                                                : kOk;
  if (!probe.problem.empty()) {
    const absl::string_view why =
        gpu_expected ? ""
        : probe.machine_has_gpu
            ? "host memory works; this machine's GPU cannot be used: "
            : "host memory works; this machine shows no GPU: ";
    return {MakeFinding(lacking, "driver", absl::StrCat(why, probe.problem))};
  }
  Findings findings = {MakeFinding(
      kOk, "driver", absl::StrCat("NVIDIA driver ", probe.driver_version))};
  findings.push_back(
      probe.gpus.empty()
          ? MakeFinding(lacking, "handles",
                        "the driver shows no GPU to this process")
          : MakeFinding(
                kOk, "handles",
                absl::StrCat("shareable memory works on ", GpuList(probe))));
  return findings;
}

bool AnyProblem(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const v1::Finding& finding) {
                       return finding.severity() == v1::Finding::PROBLEM;
                     });
}

void PrintFindings(const Findings& findings, const Terminal& terminal,
                   std::ostream& out) {
  constexpr size_t kSubjectColumns = 13;
  constexpr size_t kIndent = 24;
  const size_t columns = static_cast<size_t>(
      std::max(40, terminal.columns - static_cast<int>(kIndent)));
  for (const v1::Finding& finding : findings) {
    const auto [word, tone] = SeverityText(finding.severity());
    out << terminal.Paint(tone, absl::StrFormat("%-9s", word))
        << absl::StrFormat("%-13s  ", Printable(finding.subject()));
    std::string indent;
    if (finding.subject().size() > kSubjectColumns) {  // a device's UUID
      out << '\n';
      indent = std::string(kIndent, ' ');
    }
    for (const std::string& line :
         Wrap(Printable(finding.message()), columns)) {
      out << indent << line << '\n';
      indent = std::string(kIndent, ' ');
    }
  }
}

}  // namespace gmb::cli
