// Why no broker answers, in a sentence that says what to do.
#include "client/cli/no_answer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmb/error.h"

namespace gmb::cli {
namespace {

// " (what the lower layer says)".
std::string Cause(const absl::Status& status) {
  return absl::StrCat(
      " (", absl::StripPrefix(absl::string_view(status.message()), "gmb: "),
      ")");
}

absl::Status Silent(const absl::Status& status, const std::string& socket_dir) {
  return absl::DeadlineExceededError(absl::StrCat(
      "the broker in ", socket_dir,
      " is there but does not answer in time: try again; if it stays so, look "
      "at gmbd's log and restart it",
      Cause(status)));
}

absl::Status Unreachable(const absl::Status& status,
                         const std::string& socket_dir,
                         absl::string_view if_denied) {
  if (GetErrorDetail(status).has_value()) return status;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      // The library's words: it was greeted, and has not been hung up on.
      if (absl::StrContains(status.message(), "the session lives"))
        return CrowdedBroker(status, socket_dir);
      return absl::UnavailableError(
          absl::StrCat("no broker answers in ", socket_dir,
                       ": start gmbd with --socket-dir ", socket_dir,
                       ", or name its directory with --socket-dir or "
                       "GMB_SOCKET_DIR",
                       Cause(status)));
    case absl::StatusCode::kDeadlineExceeded:
      return Silent(status, socket_dir);
    case absl::StatusCode::kPermissionDenied:
      return absl::PermissionDeniedError(
          absl::StrCat(if_denied, Cause(status)));
    default:
      return status;
  }
}

}  // namespace

absl::Status NoBroker(const absl::Status& status,
                      const std::string& socket_dir) {
  return Unreachable(
      status, socket_dir,
      absl::StrCat("this user may not enter the broker's socket directory: run "
                   "as one who may enter ",
                   socket_dir));
}

absl::Status NoBrokerForOperators(const absl::Status& status,
                                  const std::string& socket_dir) {
  return Unreachable(
      status, socket_dir,
      absl::StrCat("this user may not reach the operators' socket: run as the "
                   "owner of ",
                   socket_dir, "/admin or in its group"));
}

absl::Status NotForTenants(const std::string& socket_dir) {
  return absl::PermissionDeniedError(absl::StrCat(
      socket_dir,
      " is a tenant's own directory, and this command is for operators: `gmb "
      "quota` shows what the tenant has and what stands in its way; an "
      "operator names the broker's whole directory with --socket-dir"));
}

absl::Status CrowdedBroker(const absl::Status& status,
                           const std::string& socket_dir) {
  return absl::DeadlineExceededError(absl::StrCat(
      "the broker in ", socket_dir,
      " is there, but its gRPC socket is crowded or it hangs: try again; if it "
      "stays so, look at gmbd's log",
      Cause(status)));
}

bool LooksStopped(const absl::Status& status) {
  if (GetErrorDetail(status).has_value()) return false;
  // gRPC's word for a stream whose connection ended before its status came.
  const bool stream_removed =
      absl::IsUnknown(status) &&
      absl::StrContains(status.message(), "Stream removed");
  return absl::IsUnavailable(status) || absl::IsCancelled(status) ||
         stream_removed;
}

absl::Status LostConnection(const absl::Status& status,
                            const std::string& socket_dir) {
  return absl::UnavailableError(
      absl::StrCat("the broker in ", socket_dir,
                   " is there, but the connection to it broke: see whether it "
                   "did what was asked, and try again",
                   Cause(status)));
}

absl::Status LostBroker(const absl::Status& status,
                        const std::string& socket_dir) {
  if (GetErrorDetail(status).has_value()) return status;
  if (LooksStopped(status)) {
    return absl::UnavailableError(absl::StrCat(
        "the broker in ", socket_dir,
        " has stopped or is stopping: `gmb status` says when one answers "
        "again; otherwise start gmbd with --socket-dir ",
        socket_dir, Cause(status)));
  }
  if (absl::IsDeadlineExceeded(status)) return Silent(status, socket_dir);
  if (absl::IsUnimplemented(status)) {
    return absl::UnimplementedError(
        absl::StrCat("the broker in ", socket_dir,
                     " does not know this call: use a gmb of the broker's "
                     "version, or update gmbd",
                     Cause(status)));
  }
  return status;
}

}  // namespace gmb::cli
