// Errors of a command for people and programs, with the next command to try.
#include "client/cli/error_report.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/text/json.h"
#include "client/cli/text/text.h"
#include "gmb/error.h"

namespace gmb::cli {
namespace {

// Where it is in the way of what, the field says.
absl::string_view BadStateAdvice(const std::string& field) {
  if (field == "if_revision")
    return "`gmb tenant get NAME` shows the revision and who wrote what";
  if (field == "force") return "`gmb tenant list` shows who declares what";
  return "`gmb session list` and `gmb lease list` show what is in use";
}

// The next command to try, where there is one. `tenant`: whose memory it is
// about, or TENANT.
std::string Advice(const ErrorDetail& detail, const std::string& tenant) {
  switch (detail.reason) {
    case ErrorReason::kNotOperator:
      return "run as the owner of the broker's admin directory or in its group";
    case ErrorReason::kNoSuchTenant:
      return "`gmb tenant list` shows the tenants, `gmb tenant set NAME` makes "
             "one";
    case ErrorReason::kNoSuchDevice:
      return "`gmb status` shows the devices and their UUIDs";
    case ErrorReason::kNoSuchLease:
      return "`gmb lease list` shows the leases";
    case ErrorReason::kTenantLimit:
      return absl::StrCat("`gmb quota --tenant ", tenant,
                          "` shows what it holds; an operator raises the limit "
                          "with `gmb tenant set ",
                          tenant, " --limit SIZE`");
    case ErrorReason::kTooManyHandles:
      return absl::StrCat(
          "few large leases need fewer; an operator raises it "
          "with `gmb tenant set ",
          tenant, " --max-handles N`");
    case ErrorReason::kTooManySessions:
      return "`gmb session list` shows who is connected";
    case ErrorReason::kPoolExhausted:
      return absl::StrCat("--wait gives it time; `gmb quota --tenant ", tenant,
                          "` shows what stands in the way, and to operators "
                          "`gmb why ",
                          tenant, "`");
    case ErrorReason::kOvercommitted:
      return "`gmb tenant list` shows the guarantees, `gmb lease list` the "
             "leases";
    case ErrorReason::kBadState:
      return std::string(BadStateAdvice(detail.field));
    default:
      return "";
  }
}

std::string Facts(const ErrorDetail& detail) {
  std::string facts = ErrorReasonName(detail.reason);
  if (!detail.field.empty()) absl::StrAppend(&facts, ", field ", detail.field);
  if (detail.deficit_bytes > 0) {
    absl::StrAppend(&facts, ", ", SizeText(detail.deficit_bytes), " too much");
  }
  if (detail.retry_after > absl::ZeroDuration()) {
    absl::StrAppend(&facts, ", try again in ",
                    DurationText(detail.retry_after));
  }
  return facts;
}

// Without the name that every line begins with.
absl::string_view Sentence(const absl::Status& status) {
  return absl::StripPrefix(absl::string_view(status.message()), "gmb: ");
}

}  // namespace

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return ExitCode::kOk;
  if (GetErrorDetail(status).has_value()) return ExitCode::kFailed;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kNotReachable;
    case absl::StatusCode::kDataLoss:
      return ExitCode::kWrongContents;
    default:
      return ExitCode::kFailed;
  }
}

ExitCode ReportError(const absl::Status& status, const Context& context) {
  if (context.json) {
    context.err << LineJson(ErrorToJson(status)) << std::endl;
    return ExitCodeOf(status);
  }
  context.err << "gmb: " << Printable(Sentence(status)) << '\n';
  if (const std::optional<ErrorDetail> detail = GetErrorDetail(status)) {
    context.err << "  reason: " << Printable(Facts(*detail)) << '\n';
    const std::string advice =
        Advice(*detail, context.tenant.empty() ? "TENANT" : context.tenant);
    if (!advice.empty())
      context.err << "  next:   " << Printable(advice) << '\n';
  }
  context.err.flush();
  return ExitCodeOf(status);
}

void ReportWarning(const absl::Status& status, const std::string& instead,
                   const Context& context) {
  const std::string sentence = absl::StrCat(Sentence(status), "; ", instead);
  if (context.json) {
    Json warning = ErrorToJson(status)["error"];
    warning["message"] = sentence;
    context.err << LineJson({{"warning", warning}}) << std::endl;
    return;
  }
  context.err << "gmb: " << Printable(sentence) << std::endl;
}

}  // namespace gmb::cli
