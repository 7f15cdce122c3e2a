// One lease in the eyes of one demand: whether it may be asked, by which step,
// and how gladly.
#ifndef GMB_QUOTA_CANDIDATE_H_
#define GMB_QUOTA_CANDIDATE_H_

#include <cstdint>
#include <optional>

#include "quota/planner.h"

namespace gmb::quota {

struct Candidate {
  const LeaseRow* lease = nullptr;
  const TenantRow* tenant = nullptr;
  Step step = Step::kEvict;
  uint64_t copy_bytes = 0;
  Instant start{};
  bool young = false;
  double borrowed_per_weight = 0;  // of its tenant, where it is to be paused
  bool restless = false;
  // Its process has had its time to answer: it is killed before others are
  // asked, since that is sure to give these bytes.
  bool forfeit = false;
};

// The rules of a demand, for leases of any tenant.
struct DemandRules {
  bool one_tenant = false;       // only that tenant gives
  bool guarantees_hold = false;  // only tenants above theirs give
  bool borrows = false;          // nobody falls below it at all
  // Bytes within a guarantee would not help, even if they were given.
  bool needs_excess = false;
  bool waits_for_young = false;   // leases that are too young are not asked
  bool takes_young_late = false;  // they are, at the last moment
  bool lets_in = false;  // a session whose gate has just opened is not asked
  bool may_pause = false;
  bool may_kill = false;        // also those who would answer
  bool may_choose = false;      // those who do not answer are passed over
  bool takes_forfeits = false;  // see Candidate::forfeit
};
DemandRules RulesOf(Cause cause);

class Judge {
 public:
  Judge(const Snapshot& snapshot, const Demand& demand, Instant now,
        const PlannerOptions& options);

  // Why the lease may not be asked, or the candidate. Rules that depend on
  // other victims (guarantees, host room) are asked later.
  std::optional<Verdict> Examine(const LeaseRow& lease, Candidate& candidate);

  // When one that was refused may be asked.
  Instant retry_at() const { return retry_at_; }
  const DemandRules& rules() const { return rules_; }
  // Null for a tenant without a row.
  const TenantRow* FindTenant(TenantId tenant, PoolId pool) const;
  // Whether one that refuses now may give its bytes before long.
  bool MayComeLater(const LeaseRow& lease, const TenantRow& tenant) const;
  // Whether the tenant's guarantee keeps the candidate, where earlier victims
  // have left so much of its excess.
  bool IsGuaranteed(const Candidate& candidate, uint64_t excess_bytes) const;
  // Whether it is of a tenant that this demand is for.
  bool IsAsked(const LeaseRow& lease) const;
  bool IsOwn(const LeaseRow& lease) const;

 private:
  std::optional<Verdict> ExamineOverdue(Candidate& candidate);
  std::optional<Verdict> ExamineGate(Candidate& candidate);
  std::optional<Verdict> ExaminePause(Candidate& candidate);
  std::optional<Verdict> ExamineAge(Candidate& candidate);
  // It is too young before that.
  std::optional<Verdict> ExamineUntil(Instant until);
  std::optional<Verdict> Terminate(Candidate& candidate, Instant start,
                                   Verdict otherwise);

  const Snapshot& snapshot_;
  const Demand& demand_;
  const Instant now_;
  const PlannerOptions& options_;
  const DemandRules rules_;
  Instant retry_at_ = Instant::Max();
};

// Whether it has shown, or its tenant has, that asking it costs time and gives
// nothing.
bool IsDistrusted(const LeaseRow& lease, const TenantRow& tenant);

// Decides about a candidate's place.
struct Rank {
  // Of its step: the lower ones are taken first.
  int step_order = 0;
  bool young = false;
  double borrowed_per_weight = 0;
  bool restless = false;
  bool copies = false;
  uint64_t process = 0;  // that would be killed; 0: none
  Instant idle_since{};
  uint64_t bytes = 0;
  LeaseId lease{};
};
Rank RankOf(const Candidate& candidate);
// Whether `a` is to be asked before `b` when so many bytes are needed.
bool ComesBefore(const Rank& a, const Rank& b, uint64_t need_bytes);

uint64_t ExcessBytes(const TenantRow& tenant);
Nanoseconds CopyTime(uint64_t bytes, const PlannerOptions& options);

}  // namespace gmb::quota

#endif  // GMB_QUOTA_CANDIDATE_H_
