// `gmb run`: the line that it says before it becomes the program.
#include "client/cli/commands/run_terms.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/cli/text/text.h"

namespace gmb::cli {
namespace {

// As libgmb_preload.so has it, unless it is told otherwise.
constexpr absl::Duration kParkAfter = absl::Seconds(1);

// The program has it from this command, unless an option says otherwise.
std::string Inherited(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes it
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Lending(const Client& client, const RunOptions& options) {
  if (options.park == "off") return "lends nothing (--no-park)";
  if (options.park.empty() && Inherited("GMB_RUN_PARK") == "off")
    return "lends nothing (GMB_RUN_PARK=off)";
  if (client.host_pool_bytes() == 0)
    return "lends nothing, since the broker has no host pool (its log says "
           "why, event host_pool)";
  const std::string after = Inherited("GMB_RUN_PARK_AFTER");
  if (!options.park_after.has_value() && !after.empty())
    return absl::StrCat("lends it while it is idle (GMB_RUN_PARK_AFTER=", after,
                        ")");
  return absl::StrCat("lends it while it is idle for ",
                      DurationText(options.park_after.value_or(kParkAfter)));
}

}  // namespace

absl::StatusOr<std::string> RunTerms(Client& client,
                                     const RunOptions& options) {
  GMB_ASSIGN_OR_RETURN(const std::vector<QuotaView> quotas, client.GetQuota());
  std::vector<std::string> limits;
  limits.reserve(quotas.size());
  for (const QuotaView& quota : quotas) {
    limits.push_back(absl::StrCat(
        SizeText(std::min(quota.limit_bytes, quota.pool_bytes)), " of ",
        quota.device, " (", SizeText(quota.obtainable_bytes), " now)"));
  }
  return absl::StrCat("gmb run: tenant ", client.tenant(), " has at most ",
                      limits.empty() ? "nothing" : absl::StrJoin(limits, ", "),
                      "; ", Lending(client, options));
}

}  // namespace gmb::cli
