// The use of tenants by days, for people.
#include "client/cli/views/usage_view.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/text/text.h"

namespace gmb::cli {
namespace {

using Align = Table::Align;

// The unit that is paid for.
std::string GibHours(double byte_seconds) {
  constexpr double kGibHour = double{uint64_t{1} << 30} * 3600;
  return absl::StrFormat("%.3g", byte_seconds / kGibHour);
}

// "3 (1.50 GiB)"; nothing as "-".
std::string MovesText(uint64_t times, uint64_t bytes) {
  if (times == 0) return "-";
  return absl::StrCat(times, " (", SizeText(bytes), ")");
}

}  // namespace

void PrintUsage(const v1::ListUsageResponse& usage, const Terminal& terminal,
                std::ostream& out, Table::Flow* flow) {
  if (usage.usage().empty()) {
    if (!flow->begun && usage.next_page_token().empty())
      out << "nothing was used in that time\n";
    return;
  }
  Table table({{"day (UTC)"},
               {"tenant"},
               {"device"},
               {"peak", Align::kRight},
               {"GiB h", Align::kRight},
               {"granted", Align::kRight},
               {"refused", Align::kRight},
               {"evicted", Align::kRight},
               {"restored", Align::kRight}});
  for (const v1::TenantUsage& row : usage.usage()) {
    table.AddRow({row.day(),
                  row.tenant(),
                  row.device(),
                  {SizeText(row.peak_bytes()), Tone::kAccent},
                  GibHours(row.byte_seconds()),
                  absl::StrCat(row.granted()),
                  absl::StrCat(row.refused()),
                  MovesText(row.evictions(), row.evicted_bytes()),
                  MovesText(row.restores(), row.restored_bytes())});
  }
  table.Print(out, terminal, flow);
}

}  // namespace gmb::cli
