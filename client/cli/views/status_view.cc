// `gmb status` for people.
#include "client/cli/views/status_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cli/text/text.h"
#include "client/cli/views/host_pool_view.h"
#include "client/cli/views/outside_view.h"
#include "client/cli/views/pool_bar.h"
#include "client/cli/views/table.h"

namespace gmb::cli {
namespace {

constexpr int kMostBarColumns = 72;

void PrintEquation(const v1::PoolStatus& pool, const Terminal& terminal,
                   std::ostream& out) {
  const uint64_t capacity = pool.capacity_bytes();
  Table table({{"  part"},
               {"size", Table::Align::kRight},
               {"of pool", Table::Align::kRight},
               {""}});
  std::string plus = "  ";
  for (const PoolPart& part : PartsOf(pool)) {
    const Tone tone = part.bytes == 0 ? Tone::kFaint : part.tone;
    table.AddRow({Table::Cell(absl::StrCat(plus, part.name), tone),
                  Table::Cell(SizeText(part.bytes),
                              part.bytes == 0 ? Tone::kFaint : Tone::kPlain),
                  Table::Cell(PercentText(part.bytes, capacity), Tone::kFaint),
                  Table::Cell(std::string(part.meaning), Tone::kFaint)});
    plus = "+ ";
  }
  const std::string target =
      pool.target_bytes() == capacity
          ? ""
          : absl::StrCat("asked to be ", SizeText(pool.target_bytes()));
  table.AddRow({Table::Cell("= capacity", Tone::kStrong),
                Table::Cell(SizeText(capacity), Tone::kStrong), Table::Cell(""),
                Table::Cell(target)});
  table.Print(out, terminal);
}

void PrintAround(const v1::PoolStatus& pool, std::ostream& out) {
  out << "guaranteed " << SizeText(pool.guaranteed_bytes()) << " ("
      << PercentText(pool.guaranteed_bytes(), pool.capacity_bytes())
      << ")   waiting " << CountText(pool.waiting(), "request");
  if (pool.waiting() > 0) out << " for " << SizeText(pool.waiting_bytes());
  out << "   " << CountText(pool.slabs(), "slab") << ", ready ones of "
      << SizeText(pool.ready_slab_bytes()) << '\n';
  out << "outside the pool: headroom " << SizeText(pool.headroom_bytes());
  if (pool.headroom_bytes() > 0)
    out << " (" << SizeText(pool.headroom_left_bytes()) << " left)";
  out << ", taken past the broker " << SizeText(pool.outside_bytes()) << '\n';
}

void PrintPool(const v1::PoolStatus& pool, const Terminal& terminal,
               std::ostream& out) {
  const v1::DeviceInfo& device = pool.device();
  out << '\n'
      << terminal.Paint(Tone::kStrong, Printable(device.uuid())) << "  "
      << Printable(device.name()) << " (" << KindText(device.kind())
      << "), pool " << SizeText(pool.capacity_bytes()) << " of "
      << SizeText(device.total_bytes());
  if (pool.draining())
    out << "  " << terminal.Paint(Tone::kWarning, "draining");
  out << '\n';
  const int columns =
      std::min(kMostBarColumns, std::max(10, terminal.columns - 2));
  out << '[' << PoolBar(pool, columns, terminal) << "]\n";
  PrintEquation(pool, terminal, out);
  PrintAround(pool, out);
  for (const std::string& warning : Warnings(pool)) {
    out << terminal.Paint(Tone::kWarning, "warning: ") << Printable(warning)
        << '\n';
  }
}

}  // namespace

std::vector<std::string> Warnings(const v1::PoolStatus& pool) {
  std::vector<std::string> warnings;
  if (!pool.problem().empty()) warnings.push_back(pool.problem());
  if (pool.capacity_bytes() > pool.target_bytes()) {
    warnings.push_back(
        absl::StrCat("the pool holds ",
                     SizeText(pool.capacity_bytes() - pool.target_bytes()),
                     " more than it is asked to; it shrinks as memory comes "
                     "back"));
  }
  if (pool.unreturned_bytes() > 0) {
    warnings.push_back(absl::StrCat(SizeText(pool.unreturned_bytes()),
                                    " were given back but are still mapped by "
                                    "a client; they come back when it ends"));
  }
  if (pool.unreturned_outside_bytes() > 0) {
    warnings.push_back(absl::StrCat(
        SizeText(pool.unreturned_outside_bytes()),
        " of these were taken by processes past the broker while they changed "
        "hands; `gmb doctor` names them"));
  }
  if (pool.missing_bytes() > 0) {
    warnings.push_back(
        absl::StrCat(SizeText(pool.missing_bytes()),
                     " of the pool were lost to processes past the broker, or "
                     "are kept by clients of deleted tenants; `gmb doctor` "
                     "says which"));
  }
  if (pool.headroom_bytes() > 0 && pool.headroom_left_bytes() == 0) {
    warnings.emplace_back(
        "the headroom is used up: a new process may not get a CUDA context; "
        "raise --headroom or "
        "shrink the pool with `gmb pool resize`");
  }
  return warnings;
}

void PrintStatus(const v1::GetStatusResponse& status,
                 const std::string& socket_dir, absl::Time now,
                 const Terminal& terminal, std::ostream& out) {
  out << "gmbd " << Printable(status.broker_version()) << " in "
      << Printable(socket_dir) << ", up " << AgeText(status.started(), now)
      << ": " << CountText(status.tenants(), "tenant") << ", "
      << CountText(status.sessions(), "session") << ", "
      << CountText(status.leases(), "lease") << ", " << status.handles()
      << " of " << CountText(status.max_handles(), "handle") << '\n';
  if (status.draining()) {
    out << terminal.Paint(
               Tone::kWarning,
               "draining: the broker is stopping and grants nothing more")
        << '\n';
  }
  if (!status.keeper_problem().empty()) {
    out << terminal.Paint(Tone::kWarning, "warning: ")
        << "the keeper is lost: " << Printable(status.keeper_problem()) << '\n';
  }
  for (const std::string& value : status.not_in_force()) {
    out << terminal.Paint(Tone::kWarning, "warning: ") << Printable(value)
        << '\n';
  }
  PrintHostPool(status.host_pool(), terminal, out);
  for (const v1::PoolStatus& pool : status.pools())
    PrintPool(pool, terminal, out);
  if (!status.outside().empty()) out << '\n';
  PrintOutside(status.outside(), terminal, out);
}

}  // namespace gmb::cli
