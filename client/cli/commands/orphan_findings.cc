// `gmb doctor`: device memory that is used, and by nobody.
#include "client/cli/commands/orphan_findings.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/keeper_findings.h"
#include "client/cli/text/text.h"

namespace gmb::cli {
namespace {

// Less is the driver's own, where NVML counts that as used.
constexpr uint64_t kWorthSaying = uint64_t{1} << 30;

}  // namespace

Findings CheckOrphans(const std::vector<internal::GpuUse>& uses,
                      const std::set<std::string>& served,
                      const std::string& keeper) {
  const std::string path = keeper.empty() ? kUsualKeeper : keeper;
  Findings findings;
  for (const internal::GpuUse& use : uses) {
    if (served.contains(use.uuid) || use.used_bytes <= use.listed_bytes)
      continue;
    const uint64_t orphaned = use.used_bytes - use.listed_bytes;
    if (orphaned < kWorthSaying) continue;
    findings.push_back(MakeFinding(
        v1::Finding::WARNING, "memory",
        absl::StrCat(
            SizeText(orphaned), " of ", use.uuid,
            " are used by no process that is listed here, and no broker "
            "answers for this GPU. If gmbd runs with another socket directory, "
            "ask it (--socket-dir). They may be slabs that the keeper of a "
            "dead "
            "gmbd has: gmb keeper status --socket ",
            path, ", and then start gmbd with --keeper ", path,
            "; or, if it shows no living client, give them up with gmb keeper "
            "drop --socket ",
            path,
            ". Or processes of other containers use them: look on the host")));
  }
  return findings;
}

}  // namespace gmb::cli
