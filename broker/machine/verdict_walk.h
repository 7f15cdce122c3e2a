#ifndef GMB_BROKER_MACHINE_VERDICT_WALK_H_
#define GMB_BROKER_MACHINE_VERDICT_WALK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "broker/machine/lease.h"
#include "broker/machine/tenant.h"
#include "broker/machine/verdict_sentences.h"
#include "quota/planner.h"
#include "quota/shortlist.h"
#include "quota/units.h"

namespace gmb::broker {

struct State;

// Says, for people, how a demand may treat each lease. Those that nobody could
// take are counted as well, so that all are looked at, slice by slice. (To carry
// a plan out takes fewer looks: Look.)
//
// A change between two slices is seen or missed, as it comes.
class VerdictWalk {
 public:
  // It has one need.
  explicit VerdictWalk(quota::Demand demand);

  // Looks at no more than about so many leases, sessions and tenants. Whether
  // all have been looked at.
  [[nodiscard]] bool GoOn(const State& state, quota::Instant now,
                          uint64_t most);
  // In all.
  [[nodiscard]] uint64_t looked_at() const { return looked_at_; }

  struct Found {
    quota::Plan plan;
    std::vector<std::string> sentences;
  };
  // After the last slice: what is done, and why the other leases stay.
  [[nodiscard]] Found Finish(const State& state, quota::Instant now);

 private:
  [[nodiscard]] bool GoOnIn(const State& state, const Tenant& tenant,
                            quota::Instant now, uint64_t until);
  void Show(const State& state, const Lease& lease, quota::Instant now);
  void Count(quota::Verdict verdict, uint64_t leases, uint64_t bytes);

  quota::Demand demand_;
  quota::TenantId only_;  // 0: all
  quota::Shortlist shortlist_;
  VerdictSums sums_;
  uint64_t looked_at_ = 0;
  // The next to be looked at. Those of sessions come first, then shared ones.
  quota::TenantId tenant_;
  uint64_t session_ = 0;
  bool shared_ = false;
  quota::LeaseId lease_{};
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_VERDICT_WALK_H_
