// Backing ahead: which parked lease is copied to the host pool next, so that
// taking it later costs no copy, and how much of the bus that may use.
#ifndef GMB_QUOTA_BACKING_H_
#define GMB_QUOTA_BACKING_H_

#include <cstdint>
#include <optional>

#include "quota/reclaim.h"

namespace gmb::quota {

struct BackingOptions {
  // 0: nothing is backed ahead but sealed contents, as the next says. Off by
  // default: see the replays in docs/reclaim-study.md.
  uint64_t bytes_per_second = 0;
  // Likewise, of sealed contents alone. Their copy stays true, so it is made
  // once.
  uint64_t sealed_bytes_per_second = 0;
  // Copied at most at a time, and what an idle budget saves up.
  uint64_t burst_bytes = uint64_t{1} << 30;
  // Parked for so long at least: a session that comes back at once makes the
  // copy untrue.
  Nanoseconds idle_for = std::chrono::seconds(2);

  // There is one budget: that of all parked memory if there is one.
  uint64_t rate() const {
    return bytes_per_second > 0 ? bytes_per_second : sealed_bytes_per_second;
  }
  bool sealed_alone() const {
    return bytes_per_second == 0 && sealed_bytes_per_second > 0;
  }
};

// A token bucket of copied bytes.
class BackingBudget {
 public:
  explicit BackingBudget(const BackingOptions& options)
      : options_(options),
        saved_bytes_(static_cast<double>(options.burst_bytes)) {}

  uint64_t AvailableBytes(Instant now);
  // Bytes that were copied, or are about to be: at most AvailableBytes.
  void Spend(uint64_t bytes, Instant now);
  // When so many bytes are there; Max: never.
  Instant AvailableAt(uint64_t bytes, Instant now);

 private:
  void Refill(Instant now);

  BackingOptions options_;
  Instant filled_at_{};
  double saved_bytes_;  // parts of a byte are earned as well
};

struct BackingStep {
  LeaseId lease{};
  uint64_t bytes = 0;  // from the first byte that is not backed yet
};

// The next step: of leases that are parked for long enough, PRESERVE (sealed
// ones alone if there is no rate for others), not wholly backed, with room in the host pool, those of tenants with most above
// their guarantee first (they are the likeliest victims), then the longest
// idle. None: nothing to do, no budget, or a request waits (`anybody_waits`):
// the bus is its. `wanted_bytes`: no more than this is worth having backed in
// all (what a forecast says will be taken); what is backed and parked counts.
std::optional<BackingStep> NextToBack(const Snapshot& snapshot, Instant now,
                                      bool anybody_waits,
                                      uint64_t available_bytes,
                                      const BackingOptions& options,
                                      uint64_t wanted_bytes = ~uint64_t{0});

}  // namespace gmb::quota

#endif  // GMB_QUOTA_BACKING_H_
