#include "tests/quota/describe.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gmb::quota {
namespace {

std::string Text(const Amount& amount) {
  return amount.is_fraction() ? absl::StrCat(100 * amount.fraction(), "%")
                              : absl::StrCat(amount.bytes());
}

std::string Text(const Refusal& refusal) {
  return absl::StrCat(ReasonName(refusal.reason),
                      " deficit=", refusal.deficit_bytes,
                      refusal.claimed ? " claimed" : "");
}

struct EventText {
  std::string operator()(const PoolSet& e) const {
    return absl::StrCat("PoolSet pool=", e.pool.value,
                        " target=", e.target_bytes,
                        " granularity=", e.granularity_bytes);
  }
  std::string operator()(const PoolDrain& e) const {
    return absl::StrCat("PoolDrain pool=", e.pool.value,
                        " draining=", e.draining);
  }
  std::string operator()(const MissingChanged& e) const {
    return absl::StrCat("MissingChanged pool=", e.pool.value,
                        " bytes=", e.missing_bytes,
                        " returning=", e.returning_bytes);
  }
  std::string operator()(const UnreturnedChanged& e) const {
    return absl::StrCat("UnreturnedChanged pool=", e.pool.value,
                        " tenant=", e.tenant.value,
                        " bytes=", e.unreturned_bytes);
  }
  std::string operator()(const TenantSet& e) const {
    return absl::StrCat("TenantSet tenant=", e.tenant.value,
                        " handles=", e.max_handles);
  }
  std::string operator()(const TenantRemove& e) const {
    return absl::StrCat("TenantRemove tenant=", e.tenant.value);
  }
  std::string operator()(const QuotaSet& e) const {
    return absl::StrCat(
        "QuotaSet pool=", e.pool.value, " tenant=", e.tenant.value,
        " guarantee=", Text(e.quota.guarantee), " limit=", Text(e.quota.limit),
        " weight=", e.quota.weight);
  }
  std::string operator()(const SessionClosed& e) const {
    return absl::StrCat("SessionClosed session=", e.session.value);
  }
  std::string operator()(const Acquire& e) const {
    return absl::StrCat("Acquire request=", e.request.value,
                        " session=", e.session.value,
                        " tenant=", e.tenant.value, " pool=", e.pool.value,
                        " bytes=", e.bytes, " handles=", e.handles,
                        " deadline=", e.deadline.ns, e.hard ? "" : " soft");
  }
  std::string operator()(const Cancel& e) const {
    return absl::StrCat("Cancel request=", e.request.value);
  }
  std::string operator()(const Softened& e) const {
    return absl::StrCat("Softened request=", e.request.value);
  }
  std::string operator()(const Released& e) const {
    return absl::StrCat("Released lease=", e.lease.value);
  }
  std::string operator()(const GrantFailed& e) const {
    return absl::StrCat("GrantFailed lease=", e.lease.value);
  }
  std::string operator()(const Tick&) const { return "Tick"; }
  std::string operator()(const HardChanged& e) const {
    return absl::StrCat("HardChanged lease=", e.lease.value, " hard=", e.hard);
  }
  std::string operator()(const Evicted& e) const {
    return absl::StrCat("Evicted lease=", e.lease.value);
  }
  std::string operator()(const Restore& e) const {
    std::string leases;
    for (const LeaseId lease : e.leases)
      absl::StrAppend(&leases, " ", lease.value);
    return absl::StrCat("Restore request=", e.request.value,
                        " session=", e.session.value, " leases=", leases,
                        " deadline=", e.deadline.ns,
                        " linger=", e.linger.count());
  }
  std::string operator()(const SessionPausing& e) const {
    return absl::StrCat("SessionPausing session=", e.session.value,
                        " pausing=", e.pausing);
  }
  std::string operator()(const Shared& e) const {
    return absl::StrCat("Shared lease=", e.lease.value);
  }
  std::string operator()(const BytesLeaving& e) const {
    return absl::StrCat("BytesLeaving pool=", e.pool.value, " bytes=", e.bytes);
  }
};

struct EffectText {
  std::string operator()(const Granted& e) const {
    return absl::StrCat("Granted request=", e.request.value,
                        " lease=", e.lease.value, " session=", e.session.value,
                        " tenant=", e.tenant.value, " pool=", e.pool.value,
                        " bytes=", e.bytes, " handles=", e.handles);
  }
  std::string operator()(const Denied& e) const {
    return absl::StrCat("Denied request=", e.request.value,
                        " session=", e.session.value, " ",
                        Text(Refusal{e.reason, e.deficit_bytes, e.claimed}),
                        e.pausing ? " pausing" : "");
  }
  std::string operator()(const Restored& e) const {
    return absl::StrCat("Restored request=", e.request.value,
                        " session=", e.session.value,
                        " tenant=", e.tenant.value, " bytes=", e.bytes,
                        e.in_part ? " in part" : "");
  }
  std::string operator()(const Waiting& e) const {
    return absl::StrCat("Waiting request=", e.request.value,
                        " ahead=", e.ahead);
  }
  std::string operator()(const QuotaApplied& e) const {
    return absl::StrCat("QuotaApplied pool=", e.pool.value,
                        " tenant=", e.tenant.value);
  }
  std::string operator()(const QuotaPending& e) const {
    return absl::StrCat("QuotaPending pool=", e.pool.value,
                        " tenant=", e.tenant.value,
                        " remaining=", e.remaining_bytes);
  }
  std::string operator()(const QuotaRefused& e) const {
    return absl::StrCat("QuotaRefused pool=", e.pool.value,
                        " tenant=", e.tenant.value, " ", Text(e.refusal));
  }
  std::string operator()(const PoolApplied& e) const {
    return absl::StrCat("PoolApplied pool=", e.pool.value);
  }
  std::string operator()(const PoolPending& e) const {
    return absl::StrCat("PoolPending pool=", e.pool.value,
                        " remaining=", e.remaining_bytes);
  }
  std::string operator()(const PoolRefused& e) const {
    return absl::StrCat("PoolRefused pool=", e.pool.value,
                        " tenant=", e.tenant.value, " ", Text(e.refusal));
  }
  std::string operator()(const TenantRemoved& e) const {
    return absl::StrCat("TenantRemoved tenant=", e.tenant.value);
  }
  std::string operator()(const TenantRefused& e) const {
    return absl::StrCat("TenantRefused tenant=", e.tenant.value, " ",
                        Text(e.refusal));
  }
  std::string operator()(const BudgetChanged& e) const {
    return absl::StrCat("BudgetChanged pool=", e.pool.value,
                        " tenant=", e.tenant.value);
  }
};

}  // namespace

std::string Describe(const Event& event) {
  return std::visit(EventText(), event);
}
std::string Describe(const Effect& effect) {
  return std::visit(EffectText(), effect);
}

std::string DescribeAnswers(const Effects& effects) {
  std::vector<std::string> ordered, others;
  for (const Effect& effect : effects) {
    const bool of_request = std::holds_alternative<Granted>(effect) ||
                            std::holds_alternative<Denied>(effect) ||
                            std::holds_alternative<Restored>(effect) ||
                            std::holds_alternative<Waiting>(effect);
    if (std::holds_alternative<BudgetChanged>(effect)) continue;
    (of_request ? ordered : others).push_back(Describe(effect));
  }
  std::sort(others.begin(), others.end());
  return absl::StrCat(absl::StrJoin(ordered, "\n  "), "\n  ",
                      absl::StrJoin(others, "\n  "));
}

}  // namespace gmb::quota
