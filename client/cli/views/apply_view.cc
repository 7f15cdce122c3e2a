// The difference that an apply makes, for people.
#include "client/cli/views/apply_view.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/text/text.h"

namespace gmb::cli {
namespace {

uint64_t BytesTakenFrom(const v1::AppliedTenant& tenant) {
  uint64_t bytes = 0;
  for (const v1::Change& change : tenant.changes())
    bytes += change.takes_bytes();
  return bytes;
}

std::string SignOf(v1::AppliedTenant::How how) {
  switch (how) {
    case v1::AppliedTenant::MADE:
      return "+ ";
    case v1::AppliedTenant::DELETED:
      return "- ";
    default:
      return "~ ";
  }
}

Tone ToneOfChange(v1::AppliedTenant::How how) {
  switch (how) {
    case v1::AppliedTenant::MADE:
      return Tone::kGood;
    case v1::AppliedTenant::DELETED:
      return Tone::kBad;
    default:
      return Tone::kWarning;
  }
}

}  // namespace

uint64_t BytesTaken(const v1::ApplyResponse& answer) {
  uint64_t bytes = 0;
  for (const v1::AppliedTenant& tenant : answer.tenants())
    bytes += BytesTakenFrom(tenant);
  return bytes;
}

void PrintApplied(const v1::ApplyResponse& answer, const Terminal& terminal,
                  std::ostream& out) {
  for (const v1::AppliedTenant& tenant : answer.tenants()) {
    // Of fields that were written without another value there is nothing to say.
    const std::string what =
        tenant.diff().empty() ? tenant.name() : tenant.diff();
    out << terminal.Paint(ToneOfChange(tenant.how()),
                          absl::StrCat(SignOf(tenant.how()), Printable(what)));
    if (const uint64_t bytes = BytesTakenFrom(tenant); bytes > 0) {
      out << "; takes " << SizeText(bytes) << " from its processes";
    }
    out << '\n';
  }
  out << CountText(answer.unchanged(), "tenant") << " unchanged\n";
}

}  // namespace gmb::cli
