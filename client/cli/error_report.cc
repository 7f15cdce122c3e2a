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

// The next command to try, where there is one.
absl::string_view Advice(ErrorReason reason) {
  switch (reason) {
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
      return "`gmb why TENANT` shows what it holds, `gmb tenant set TENANT "
             "--limit SIZE` raises it";
    case ErrorReason::kTooManyHandles:
      return "`gmb tenant set TENANT --max-handles N` raises it; few large "
             "leases need fewer";
    case ErrorReason::kTooManySessions:
      return "`gmb session list` shows who is connected";
    case ErrorReason::kPoolExhausted:
      return "`gmb why TENANT` shows what stands in the way; --wait gives it "
             "time";
    case ErrorReason::kOvercommitted:
      return "`gmb tenant list` shows the guarantees, `gmb lease list` the "
             "leases";
    case ErrorReason::kBadState:
      return "`gmb session list` and `gmb lease list` show what is in use";
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
    if (const absl::string_view advice = Advice(detail->reason);
        !advice.empty()) {
      context.err << "  next:   " << advice << '\n';
    }
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
