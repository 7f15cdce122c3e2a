// The host pool for people.
#include "client/cli/views/host_pool_view.h"

#include "absl/strings/str_cat.h"
#include "client/cli/text/text.h"

namespace gmb::cli {

std::vector<std::string> Warnings(const v1::HostPoolStatus& pool) {
  std::vector<std::string> warnings;
  if (!pool.problem().empty())
    warnings.push_back(absl::StrCat("host pool: ", pool.problem()));
  if (pool.failed_bytes() > 0) {
    warnings.push_back(
        absl::StrCat(SizeText(pool.failed_bytes()),
                     " of the host pool cannot be used, as the machine has no "
                     "memory for it: lower host_pool, or stop what else uses "
                     "the memory, and start the broker anew"));
  }
  return warnings;
}

void PrintHostPool(const v1::HostPoolStatus& pool, const Terminal& terminal,
                   std::ostream& out) {
  out << terminal.Paint(Tone::kStrong, "host pool") << "  ";
  if (pool.bytes() == 0) {
    out << "none: leases whose contents are to be kept stay on the device\n";
    return;
  }
  out << SizeText(pool.bytes());
  if (!pool.pages().empty()) out << " (" << Printable(pool.pages()) << ')';
  if (pool.on_demand()) out << " by default, taken as it is needed";
  out << ", " << PercentText(pool.prepared_bytes(), pool.bytes())
      << " prepared, " << PercentText(pool.locked_bytes(), pool.bytes())
      << " page-locked";
  if (!pool.done()) out << terminal.Paint(Tone::kWarning, ", being prepared");
  out << "\n           reserved " << SizeText(pool.reserved_bytes()) << " ("
      << PercentText(pool.reserved_bytes(), pool.bytes()) << "), placed "
      << SizeText(pool.placed_bytes()) << ", held "
      << SizeText(pool.held_bytes()) << '\n';
  for (const std::string& warning : Warnings(pool)) {
    out << terminal.Paint(Tone::kWarning, "warning: ") << Printable(warning)
        << '\n';
  }
}

}  // namespace gmb::cli
