#ifndef GMB_CLIENT_CLI_HOLD_HOLDER_H_
#define GMB_CLIENT_CLI_HOLD_HOLDER_H_

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/context.h"
#include "gmb/options.h"

namespace gmb::cli {

struct HoldOptions {
  std::string tenant;        // empty: the one that the socket says
  std::string tenant_token;  // secret; empty: none
  uint64_t bytes = 0;
  uint32_t count = 1;
  std::string device;
  Contents contents = Contents::kPreserve;
  std::optional<uint8_t> fill;   // nullopt: a pattern
  std::optional<uint64_t> seed;  // nullopt: random
  absl::Duration hold = absl::InfiniteDuration();
  absl::Duration wait = absl::ZeroDuration();
  bool seal = false;
  std::string share_as;  // empty: the session's own; otherwise sealed
  bool keep = false;
  std::string attach;  // not empty: instead of leasing; reads what it holds
  // nullopt: in use all the time. Otherwise the gate is on and nothing is in a
  // scope, but to verify the contents every so often and at the end.
  std::optional<absl::Duration> idle;
};

// A real client process at work: connects, leases, fills, verifies, holds,
// verifies again, releases; one line (or JSON object) a step. Stops holding
// when asked to, when the broker drains, and when the session is over.
absl::StatusOr<ExitCode> Hold(Context& context, const HoldOptions& options,
                              std::stop_token stop);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_HOLD_HOLDER_H_
