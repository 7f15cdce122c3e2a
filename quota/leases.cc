// Leases and the bytes that they are charged for: they come, leave the device,
// return and end.
#include "quota/leases.h"

#include <algorithm>
#include <iterator>

#include "quota/must_find.h"

namespace gmb::quota {
namespace {

Ledger::Place PlaceOf(const LeaseView& lease) {
  if (lease.evicted) return Ledger::Place::kEvicted;
  return lease.hard ? Ledger::Place::kHard : Ledger::Place::kSoft;
}

}  // namespace

const LeaseView& Leases::Of(LeaseId id) const {
  return MustFind(table_, id, "lease");
}

void Leases::GoOnFrom(uint64_t last_id) { last_ = std::max(last_, last_id); }

void Leases::Charge(const LeaseView& lease, Pools& pools) {
  Ledger& ledger = pools.Find(lease.pool)->ledger;
  ledger.AddLease(*ledger.Find(lease.tenant), lease.bytes, lease.handles,
                  PlaceOf(lease));
}

LeaseId Leases::Grant(const LeaseView& lease, Pools& pools) {
  Charge(lease, pools);
  const LeaseId id{++last_};
  table_.emplace(id, lease);
  return id;
}

void Leases::Adopt(const AdoptedLease& lease, Pools& pools) {
  Charge(lease.lease, pools);
  table_.emplace(lease.id, lease.lease);
  GoOnFrom(lease.id.value);
}

std::optional<LeaseView> Leases::End(LeaseId id, Pools& pools) {
  const auto it = table_.find(id);
  if (it == table_.end()) return std::nullopt;
  const LeaseView lease = it->second;
  table_.erase(it);
  Ledger& ledger = pools.Find(lease.pool)->ledger;
  ledger.RemoveLease(*ledger.Find(lease.tenant), lease.bytes, lease.handles,
                     PlaceOf(lease));
  return lease;
}

void Leases::Move(LeaseView& lease, bool hard, bool evicted, Pools& pools) {
  const Ledger::Place from = PlaceOf(lease);
  lease.hard = hard;
  lease.evicted = evicted;
  Ledger& ledger = pools.Find(lease.pool)->ledger;
  ledger.MoveLease(*ledger.Find(lease.tenant), lease.bytes, from,
                   PlaceOf(lease));
}

const LeaseView* Leases::SetHard(LeaseId id, bool hard, Pools& pools) {
  const auto it = table_.find(id);
  if (it == table_.end() || it->second.evicted) return nullptr;
  if (it->second.hard == hard) return nullptr;
  Move(it->second, hard, false, pools);
  return &it->second;
}

const LeaseView* Leases::Evict(LeaseId id, Pools& pools) {
  const auto it = table_.find(id);
  if (it == table_.end() || it->second.evicted) return nullptr;
  Move(it->second, false, true, pools);
  return &it->second;
}

const LeaseView& Leases::BringBack(LeaseId id, Pools& pools) {
  LeaseView& lease = MustFind(table_, id, "lease");
  Move(lease, false, false, pools);
  return lease;
}

bool Leases::Share(LeaseId id) {
  const auto it = table_.find(id);
  if (it == table_.end()) return false;
  it->second.session = {};
  return true;
}

void Leases::CollectParts(Request& request) const {
  using Part = Request::Part;
  request.parts.clear();
  request.sessions.clear();
  for (const LeaseId id : request.leases) {
    const LeaseView& lease = Of(id);
    if (lease.session != SessionId{}) request.sessions.push_back(lease.session);
    auto part = std::find_if(
        request.parts.begin(), request.parts.end(),
        [&](const Part& other) { return other.pool == lease.pool; });
    if (part == request.parts.end()) {
      request.parts.push_back(
          {.pool = lease.pool,
           .ask = {.bytes = 0, .hard = false, .restore = true}});
      part = std::prev(request.parts.end());
    }
    part->ask.bytes += lease.bytes;
  }
  std::sort(request.sessions.begin(), request.sessions.end());
  request.sessions.erase(
      std::unique(request.sessions.begin(), request.sessions.end()),
      request.sessions.end());
  std::sort(request.parts.begin(), request.parts.end(),
            [](const Part& a, const Part& b) { return a.pool < b.pool; });
}

}  // namespace gmb::quota
