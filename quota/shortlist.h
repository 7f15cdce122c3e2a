// Of all leases of a pool, those that a plan needs to see.
//
// A plan over 100,000 leases takes longer than anybody may wait for a lock. So
// the caller shows the leases in slices, tenant by tenant, over as long a time
// as it likes; those that come first are remembered, and what the others could
// give is added up. MakePlan then decides on fresh rows of the remembered ones.
#ifndef GMB_QUOTA_SHORTLIST_H_
#define GMB_QUOTA_SHORTLIST_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "quota/candidate.h"
#include "quota/planner.h"

namespace gmb::quota {

class Shortlist {
 public:
  // Many more than a plan has victims: some are refused in the end. While no
  // more than so many leases could be taken, the plan is that of all leases.
  static constexpr size_t kLongest = 256;

  // `demand` has one need.
  explicit Shortlist(Demand demand) : demand_(std::move(demand)) {}

  // Whether leases of the tenant need not be shown: its guarantee keeps all,
  // unless a client of it is overdue.
  [[nodiscard]] bool Skips(const TenantRow& tenant,
                           const PlannerOptions& options) const;
  // A lease of the demand's pool. All of one tenant's come in a row, and
  // EndTenant after them. Why it may not be asked; none: it may, so far.
  std::optional<Verdict> Show(const LeaseRow& lease, const TenantRow& tenant,
                              Instant now, const PlannerOptions& options);
  void EndTenant();

  // After the last tenant.
  [[nodiscard]] std::vector<LeaseId> Chosen();
  [[nodiscard]] uint64_t beyond_bytes() const { return beyond_bytes_; }
  [[nodiscard]] uint64_t later_bytes() const { return later_bytes_; }
  // When one that was refused may be asked.
  [[nodiscard]] Instant retry_at() const { return retry_at_; }
  // A step of one is under way.
  [[nodiscard]] bool any_busy() const { return any_busy_; }
  [[nodiscard]] uint64_t shown() const { return shown_; }
  struct Sum {
    uint64_t leases = 0;
    uint64_t bytes = 0;
  };
  // Those that might be asked, but for the tenant's guarantee; and those that
  // others come before.
  [[nodiscard]] const Sum& kept() const { return kept_; }
  [[nodiscard]] const Sum& left_out() const { return left_out_; }

 private:
  struct Entry {
    Rank rank;
    // Takes of the tenant's excess; may be above what is left of it.
    bool guarantee_counts = false;
    bool whole = false;  // only if all of it is left
  };
  [[nodiscard]] bool Before(const Entry& a, const Entry& b) const;
  // Keeps the first kLongest; answers the bytes of the others.
  uint64_t Prune(std::vector<Entry>& entries);

  Demand demand_;
  std::vector<Entry> entries_;
  // Of the tenant that is being shown.
  std::vector<Entry> its_;
  uint64_t its_excess_bytes_ = 0;
  uint64_t its_pruned_bytes_ = 0;
  uint64_t its_later_bytes_ = 0;
  bool its_later_is_lent_ = false;
  uint64_t beyond_bytes_ = 0;
  uint64_t later_bytes_ = 0;
  Instant retry_at_ = Instant::Max();
  bool any_busy_ = false;
  uint64_t shown_ = 0;
  Sum kept_;
  Sum left_out_;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_SHORTLIST_H_
