#include "tests/quota/plan_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "quota/candidate.h"

namespace gmb::quota {
namespace {

class PlanCheck {
 public:
  PlanCheck(const Snapshot& snapshot, const Demand& demand, Instant now,
            const PlannerOptions& options, const Plan& plan)
      : snapshot_(snapshot),
        demand_(demand),
        now_(now),
        options_(options),
        plan_(plan) {}

  std::string Run() {
    Expect(plan_.victims.size() <= 16, "more than 16 victims");
    std::set<LeaseId> seen;
    for (const Victim& victim : plan_.victims) {
      Expect(seen.insert(victim.lease).second, "a victim twice");
      CheckVictim(victim);
    }
    for (const Victim& victim : plan_.victims) CheckCalmFirst(victim, seen);
    CheckGuarantees();
    for (const Need& need : demand_.needs) CheckNeed(need);
    return problem_;
  }

 private:
  void Expect(bool condition, const std::string& text) {
    if (!condition && problem_.empty()) problem_ = text;
  }

  const LeaseRow& RowOf(const Victim& victim) const {
    return *std::find_if(
        snapshot_.leases.begin(), snapshot_.leases.end(),
        [&](const LeaseRow& row) { return row.lease == victim.lease; });
  }
  const TenantRow& TenantOf(const LeaseRow& lease) const {
    return *std::find_if(snapshot_.tenants.begin(), snapshot_.tenants.end(),
                         [&](const TenantRow& row) {
                           return row.tenant == lease.tenant &&
                                  row.pool == lease.pool;
                         });
  }
  static uint64_t Excess(const TenantRow& tenant) {
    return tenant.resident_bytes > tenant.guarantee_bytes
               ? tenant.resident_bytes - tenant.guarantee_bytes
               : 0;
  }

  void CheckVictim(const Victim& victim) {
    const LeaseRow& row = RowOf(victim);
    const TenantRow& tenant = TenantOf(row);
    const std::string who = absl::StrCat("lease ", row.lease.value, ": ");
    const bool within = demand_.cause == Cause::kWithinGuarantee;
    Expect(!row.evicted, who + "is evicted already");
    Expect(row.session != demand_.session, who + "of the session that asks");
    Expect(victim.bytes == row.bytes, who + "other bytes than it has");
    Expect(victim.start >= now_, who + "in the past");
    if (victim.step == Step::kTerminate) {
      Expect(tenant.may_terminate &&
                 row.unmap_deadline + options_.kill_grace <= now_,
             who + "is killed without need");
      CheckKillHelps(who);
      return;
    }
    Expect(row.owed_by_process == 0, who + "of a process that owes an answer");
    Expect(tenant.owed_answers < 3, who + "of a tenant that owes answers");
    Expect(!row.busy, who + "is busy");
    Expect(row.back_off_until <= now_, who + "is to be left alone");
    Expect(row.contents != Contents::kResident && row.evictable,
           who + "cannot be evicted");
    if (victim.step == Step::kPause) {
      Expect(within, who + "is paused for one who borrows");
      Expect(row.gate == Gate::kActive, who + "need not be paused");
      Expect(row.no_pause_until <= now_, who + "was paused in vain lately");
      Expect(Excess(tenant) > 0, who + "is paused within its guarantee");
    } else {
      Expect(row.gate == Gate::kParked || row.gate == Gate::kClosed,
             who + "is active and evicted");
    }
    const Instant until = row.resident_since +
                          std::max(tenant.min_residency, 4 * row.restore_time);
    if (within) {
      // Before its time only if the deadline would be missed otherwise.
      const bool pressed =
          until + tenant.pause_grace + std::chrono::seconds(1) +
              2 * Nanoseconds(static_cast<int64_t>(
                      static_cast<double>(row.bytes) * 1e9 /
                      static_cast<double>(options_.copy_bytes_per_second))) >
          demand_.deadline;
      Expect(victim.start >= until || pressed, who + "is too young");
    } else {
      Expect(until <= now_, who + "is too young");
    }
  }

  // A session that wakes often is spared while a calm one could give as much.
  void CheckCalmFirst(const Victim& victim, const std::set<LeaseId>& victims) {
    const LeaseRow& row = RowOf(victim);
    if (victim.step != Step::kEvict || !WakesOften(row) || !IsOfAge(row))
      return;
    for (const LeaseRow& calm : snapshot_.leases) {
      if (calm.pool != row.pool || calm.bytes < row.bytes || WakesOften(calm) ||
          !CouldGive(calm)) {
        continue;
      }
      Expect(victims.contains(calm.lease),
             absl::StrCat("lease ", row.lease.value,
                          ": wakes often, and is taken before a calm one"));
    }
  }
  // Whether it could give memory, whatever comes before it, also of those that
  // are let off in the end.
  bool CouldGive(const LeaseRow& row) const {
    const TenantRow& tenant = TenantOf(row);
    uint64_t its = 0;
    for (const LeaseRow& other : snapshot_.leases) {
      const bool counts = other.tenant == row.tenant && other.pool == row.pool;
      its += counts && !other.evicted ? other.bytes : 0;
    }
    const DemandRules rules = RulesOf(demand_.cause);
    return row.gate == Gate::kParked && row.evictable && row.host_room &&
           row.contents != Contents::kResident && !row.evicted && !row.busy &&
           row.back_off_until <= now_ && row.unmap_deadline > now_ &&
           row.owed_by_process == 0 && tenant.owed_answers == 0 &&
           row.session != demand_.session && IsOfAge(row) &&
           (!rules.one_tenant || row.tenant == demand_.tenant) &&
           (!rules.guarantees_hold || its <= Excess(tenant));
  }
  bool IsOfAge(const LeaseRow& row) const {
    return ResidentUntil(row, TenantOf(row), options_) <= now_;
  }
  bool WakesOften(const LeaseRow& row) const {
    const double bytes =
        static_cast<double>(std::max(row.bytes, row.session_bytes));
    const double out_ns =
        bytes * 1e9 / static_cast<double>(options_.copy_bytes_per_second);
    const double back_ns =
        std::max(out_ns, static_cast<double>(row.restore_time.count()));
    // Not where it depends on how halves are rounded.
    return row.usual_gap.count() > 0 &&
           static_cast<double>(row.usual_gap.count()) + 100 <
               static_cast<double>(options_.gap_round_trips) *
                   (out_ns + back_ns);
  }

  // One who borrows has nobody killed while parked memory would do.
  void CheckKillHelps(const std::string& who) {
    if (demand_.cause != Cause::kBorrow || demand_.needs.size() != 1) return;
    const Need& need = demand_.needs.front();
    uint64_t evicted = 0;
    for (const Victim& victim : plan_.victims)
      evicted += victim.step == Step::kEvict ? victim.bytes : 0;
    Expect(evicted < need.bytes, who + "is killed though others are evicted");
  }

  void CheckGuarantees() {
    std::map<const TenantRow*, std::pair<uint64_t, uint64_t>> taken;
    for (const Victim& victim : plan_.victims) {
      if (victim.step == Step::kTerminate) continue;
      const LeaseRow& row = RowOf(victim);
      auto& [sum, largest] = taken[&TenantOf(row)];
      sum += row.bytes;
      largest = std::max(largest, row.bytes);
    }
    for (const auto& [tenant, bytes] : taken) {
      if (tenant->tenant == demand_.tenant && demand_.cause == Cause::kBorrow) {
        continue;  // its own
      }
      if (demand_.cause == Cause::kBorrow && !options_.lend_parked_guarantees) {
        Expect(bytes.first <= Excess(*tenant),
               "a borrower takes what is guaranteed");
      } else if (demand_.cause == Cause::kWithinGuarantee) {
        Expect(bytes.first - bytes.second < Excess(*tenant),
               "a tenant gives whole leases that are guaranteed to it");
      }
    }
  }

  void CheckNeed(const Need& need) {
    uint64_t sum = 0, least = ~uint64_t{0};
    for (const Victim& victim : plan_.victims) {
      if (victim.pool != need.pool) continue;
      sum += victim.bytes;
      least = std::min(least, victim.bytes);
    }
    if (sum == 0) return;
    Expect(sum - least < need.bytes, "a victim is not needed");
    if (demand_.cause == Cause::kBorrow && !demand_.collects &&
        plan_.victims.size() < 16) {
      Expect(sum >= need.bytes, "victims for nothing");
    }
  }

  const Snapshot& snapshot_;
  const Demand& demand_;
  const Instant now_;
  const PlannerOptions& options_;
  const Plan& plan_;
  std::string problem_;
};

}  // namespace

std::string CheckPlan(const Snapshot& snapshot, const Demand& demand,
                      Instant now, const PlannerOptions& options,
                      const Plan& plan) {
  return PlanCheck(snapshot, demand, now, options, plan).Run();
}

}  // namespace gmb::quota
