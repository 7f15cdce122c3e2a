// Says which leases of a waiting Restore may come back before the others.
#include "quota/in_part.h"

namespace gmb::quota {
namespace {

// Free bytes are a part from such a share of the rest on: each part costs a look
// at all of the leases, and there may be thousands.
constexpr uint64_t kMostPartsOfRest = 16;

}  // namespace

// The request lacks bytes, so that at least one of its leases has to wait.
// Shared ones do: others may come to wait for them by this request.
std::vector<LeaseId> FittingNow(const PoolState& pool, const Claims& claims,
                                const Leases& leases, const Waiter& waiter) {
  const Request& asked = waiter.asked;
  const Account& account = *pool.ledger.Find(asked.tenant);
  const Ask& rest = asked.parts.front().ask;
  const Ask none{.bytes = 0, .hard = false, .restore = true};
  // A soft request lacks one byte more for each that it asks for.
  int64_t room =
      rest.bytes > account.GuaranteeLeftBytes()
          ? -LackingBesideClaims(pool, account, none, claims, waiter.place)
          : pool.ledger.FreeBytes();
  std::vector<LeaseId> fitting;
  if (room < static_cast<int64_t>(rest.bytes / kMostPartsOfRest))
    return fitting;
  for (const LeaseId lease : asked.leases) {
    if (room <= 0) break;
    const LeaseView& its = leases.Of(lease);
    const auto bytes = static_cast<int64_t>(its.bytes);
    if (its.session == SessionId{} || bytes > room) continue;
    room -= bytes;
    fitting.push_back(lease);
  }
  return fitting;
}

void MarkBackInPart(const Request& request, Pools& pools, bool waits) {
  if (request.back_bytes == 0) return;
  Ledger& ledger = pools.Find(request.parts.front().pool)->ledger;
  Account& account = *ledger.Find(request.tenant);
  const uint64_t others_bytes =
      account.back_in_part_bytes - (waits ? 0 : request.back_bytes);
  ledger.SetBackInPart(account,
                       others_bytes + (waits ? request.back_bytes : 0));
}

void ForgetBackInPart(LeaseId lease, uint64_t bytes, bool taken,
                      Waiters& waiters, Pools& pools) {
  const Request* request = waiters.ForgetBack(lease, bytes, taken);
  if (request == nullptr) return;
  Ledger& ledger = pools.Find(request->parts.front().pool)->ledger;
  Account& account = *ledger.Find(request->tenant);
  ledger.SetBackInPart(account, account.back_in_part_bytes - bytes);
}

}  // namespace gmb::quota
