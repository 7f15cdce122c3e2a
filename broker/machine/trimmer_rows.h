#ifndef GMB_BROKER_MACHINE_TRIMMER_ROWS_H_
#define GMB_BROKER_MACHINE_TRIMMER_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "broker/machine/group_gates.h"
#include "broker/machine/state.h"
#include "quota/reclaim.h"
#include "quota/units.h"

namespace gmb::broker {

// Sessions that say they could give something back, as a plan sees them: with
// their first lease there, which is not taken by these. Each plan sees those
// that were asked. Where there are more others than it sees, the next one begins
// with those that this one has not seen: nobody is hidden by others for good.
class TrimmerRows {
 public:
  // With something to give; and in all.
  static constexpr size_t kMostSeen = 128;
  static constexpr size_t kMostLookedAt = 1024;

  // `rows`: those of the leases that may be taken; those of others are added.
  TrimmerRows(const State& state, quota::PoolId pool, quota::Instant now,
              std::vector<quota::LeaseRow>* rows);

  // Those that the demand may ask, from that session on.
  void Add(const quota::Demand& demand, uint64_t from);
  // Where the next plan begins.
  [[nodiscard]] uint64_t next() const { return next_; }
  // The cost of all that, in leases: see LookBudget.
  [[nodiscard]] uint64_t looks() const { return looks_ + groups_.looks; }

 private:
  // Those that were asked already, whose bytes are counted on.
  void AddAsked(const quota::Demand& demand);
  template <typename Sessions>
  void AddAmong(const Sessions& sessions, uint64_t from);
  // Whether it has something to give.
  bool AddOne(uint64_t id);

  const State& state_;
  const quota::PoolId pool_;
  const quota::Instant now_;
  std::vector<quota::LeaseRow>* const rows_;
  absl::flat_hash_map<quota::LeaseId, size_t> row_of_;
  GroupGates groups_;
  uint64_t looks_ = 0;
  uint64_t next_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_TRIMMER_ROWS_H_
