// Says when a request at the head of a queue holds back those behind it, and
// how many bytes it claims then.
#include "quota/claim.h"

#include <algorithm>

namespace gmb::quota {

ClaimPhase PhaseAt(const ClaimWindow& window, Instant now) {
  if (window.first <= Nanoseconds(0) || now < window.from) {
    return {.holds = false, .since = {}, .until = window.from};
  }
  Instant start = window.from;
  Nanoseconds length = window.first;
  while (true) {
    const Instant held_until = start + length;
    // A time that is for ever does not end.
    if (now < held_until || held_until == Instant::Max()) {
      return {.holds = true, .since = start, .until = held_until};
    }
    const Instant open_until = held_until + length;
    if (now < open_until || open_until == Instant::Max()) {
      return {.holds = false, .since = held_until, .until = open_until};
    }
    start = open_until;
    length = start - window.from;
  }
}

int64_t LackingBeside(const Claim& claim, int64_t bytes, int64_t beyond_bytes,
                      int64_t free_bytes, int64_t slack_bytes) {
  const int64_t lacking =
      static_cast<int64_t>(claim.bytes) + bytes - free_bytes;
  if (claim.slack_bytes == 0 || beyond_bytes <= 0) return lacking;
  return std::max(lacking, static_cast<int64_t>(claim.slack_bytes) +
                               beyond_bytes - slack_bytes);
}

}  // namespace gmb::quota
