// A tenant's own quota, for the people who run its programs.
#include "client/cli/views/quota_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/text/text.h"
#include "client/cli/views/table.h"

namespace gmb::cli {
namespace {

using Align = Table::Align;

Table::Cell Figure(uint64_t bytes, Tone tone = Tone::kPlain) {
  return {SizeText(bytes), bytes == 0 ? Tone::kFaint : tone};
}

}  // namespace

std::vector<std::string> Reasons(const v1::QuotaView& view) {
  std::vector<std::string> reasons;
  const uint64_t below_limit =
      view.limit_bytes() - std::min(view.limit_bytes(), view.leased_bytes());
  if (view.over_limit_bytes() > 0) {
    reasons.push_back(absl::StrCat(
        SizeText(view.over_limit_bytes()),
        " are leased above the limit: new requests are refused until so much "
        "is released"));
  } else if (below_limit == 0) {
    reasons.push_back(
        "it holds as much as its limit: release leases, or ask the operator "
        "for a higher limit");
  } else if (view.obtainable_bytes() < below_limit) {
    reasons.push_back(absl::StrCat(
        SizeText(view.obtainable_bytes()), " of the ", SizeText(below_limit),
        " up to its limit can be had at once; for more a request has to wait "
        "until others release, or are asked to"));
  }
  if (view.unreturned_bytes() > 0) {
    reasons.push_back(absl::StrCat(
        SizeText(view.unreturned_bytes()),
        " were given back and are still held by some process of the tenant: "
        "they count until it ends"));
  }
  return reasons;
}

void PrintQuota(const v1::QuotaReport& report, const Terminal& terminal,
                std::ostream& out) {
  out << "tenant " << terminal.Paint(Tone::kStrong, Printable(report.tenant()))
      << '\n';
  Table table({{"device"},
               {"guarantee", Align::kRight},
               {"limit", Align::kRight},
               {"weight", Align::kRight},
               {"leased", Align::kRight},
               {"evicted", Align::kRight},
               {"obtainable", Align::kRight},
               {"pool", Align::kRight}});
  for (const v1::QuotaView& view : report.quotas()) {
    table.AddRow({view.device(), Figure(view.guarantee_bytes()),
                  Figure(view.limit_bytes()),
                  absl::StrFormat("%g", view.weight()),
                  Figure(view.leased_bytes(), Tone::kAccent),
                  Figure(view.evicted_bytes()), Figure(view.obtainable_bytes()),
                  Figure(view.pool_bytes())});
  }
  table.Print(out, terminal);
  for (const v1::QuotaView& view : report.quotas()) {
    for (const std::string& reason : Reasons(view))
      out << "- " << Printable(view.device()) << ": " << reason << '\n';
  }
}

}  // namespace gmb::cli
