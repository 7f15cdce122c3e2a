// Which leases may be taken, and what has changed since the last plan.
#include "broker/machine/reclaim_index.h"

#include <algorithm>

#include "broker/machine/state.h"

namespace gmb::broker {
namespace {

// Whether one who has it was killed, so that it comes back by itself.
bool IsOfDying(const State& state, const Lease& lease) {
  const bool stays = lease.sharing->shared &&
                     (lease.move->mappings.size() > 1 ||
                      (lease.request.keep && !lease.sharing->dropped));
  if (stays || lease.move->residence == Residence::kEvicted) return false;
  return std::any_of(lease.move->mappings.begin(), lease.move->mappings.end(),
                     [&](const Mapping& mapping) {
                       const Session* user =
                           state.sessions->Find(mapping.session);
                       return user != nullptr && user->talk->dying;
                     });
}

// Without the gates' words: these change without anybody saying so.
bool MayBeTaken(const State& state, const Lease& lease) {
  if (lease.life->doomed || lease.move->residence == Residence::kEvicted)
    return false;
  if (lease.contents() == v1::RESIDENT ||
      state.PoolAt(lease.request.pool).info.kind == device::DeviceKind::kIpc) {
    return false;
  }
  if (lease.sharing->shared) return true;  // all who use it are asked
  const Session* holder = state.sessions->Find(lease.request.session);
  return holder != nullptr && holder->gate != nullptr && holder->gate->on();
}

ReclaimEntry EntryOf(const State& state, const Lease& lease) {
  ReclaimEntry entry;
  entry.listed = MayBeTaken(state, lease);
  entry.overdue = lease.overdue() || lease.refused();
  entry.comes =
      lease.life->doomed ||
      (lease.move->residence == Residence::kEvicting && !entry.overdue) ||
      IsOfDying(state, lease);
  entry.awaits = *lease.awaits_pause && !entry.comes;
  entry.own = !lease.sharing->shared && !lease.life->doomed &&
              lease.MappingOf(lease.request.session) != nullptr;
  for (const Mapping& mapping : lease.move->mappings) {
    if (mapping.asked && !mapping.overdue)
      entry.answer_by = std::min(entry.answer_by, mapping.answer_by);
  }
  return entry;
}

}  // namespace

void ReclaimIndex::Touch(const State& state, Lease& lease) {
  const ReclaimEntry entry = EntryOf(state, lease);
  Part& part = parts_[lease.request.pool];
  Sums& sums = part.tenants[lease.tenant];
  const bool matters = lease.reclaim->listed || entry.listed || sums.slept_on ||
                       part.listed.contains(lease.tenant);
  const bool leaves = lease.reclaim->listed && (entry.comes || !entry.listed);
  if (lease.reclaim->overdue || entry.overdue) late_.insert(lease.id);
  if (entry != *lease.reclaim) {
    Unbook(lease, *lease.reclaim);
    Book(lease, entry);
    lease.reclaim.Edit({}) = entry;
  }
  // Of leases that nobody can take, only the tenant's sum counts: it may come
  // above its guarantee by them.
  if (!matters) return;
  if (leaves) return MarkLess(part, sums);
  MarkChanged(lease.request.pool, lease.tenant);
}

void ReclaimIndex::Forget(Lease& lease) {
  const bool listed = lease.reclaim->listed;
  if (lease.reclaim->overdue) late_.insert(lease.id);
  Unbook(lease, *lease.reclaim);
  lease.reclaim.Edit({}) = {};
  Part& part = parts_[lease.request.pool];
  Sums& its = part.tenants[lease.tenant];
  if (listed || its.slept_on) MarkLess(part, its);
}

bool ReclaimIndex::IsTrueOf(const State& state, const Lease& lease) const {
  if (EntryOf(state, lease) != *lease.reclaim) return false;
  const Listed& listed = ListedIn(lease.request.pool);
  const auto its = listed.find(lease.tenant);
  const auto part = parts_.find(lease.request.pool);
  const bool own = part != parts_.end() &&
                   part->second.own.contains({lease.request.session, lease.id});
  if (own != lease.reclaim->own) return false;
  return (its != listed.end() && its->second.contains(lease.id)) ==
         lease.reclaim->listed;
}

void ReclaimIndex::Book(const Lease& lease, const ReclaimEntry& entry) {
  Part& part = parts_[lease.request.pool];
  for (Sums* sums : {&part.sums, &part.tenants[lease.tenant]}) {
    if (entry.comes) sums->coming_bytes += lease.bytes;
    if (entry.awaits) sums->awaiting_bytes += lease.bytes;
    if (entry.overdue) ++sums->overdue;
  }
  if (entry.listed) part.listed[lease.tenant].insert(lease.id);
  if (entry.own) part.own.emplace(lease.request.session, lease.id);
  if (entry.answer_by != quota::Instant::Max())
    answers_.emplace(entry.answer_by, lease.id);
}

void ReclaimIndex::Unbook(const Lease& lease, const ReclaimEntry& entry) {
  Part& part = parts_[lease.request.pool];
  for (Sums* sums : {&part.sums, &part.tenants[lease.tenant]}) {
    if (entry.comes) sums->coming_bytes -= lease.bytes;
    if (entry.awaits) sums->awaiting_bytes -= lease.bytes;
    if (entry.overdue) --sums->overdue;
  }
  if (entry.listed) {
    const auto its = part.listed.find(lease.tenant);
    its->second.erase(lease.id);
    if (its->second.empty()) part.listed.erase(its);
  }
  if (entry.own) part.own.erase({lease.request.session, lease.id});
  if (entry.answer_by != quota::Instant::Max())
    answers_.erase({entry.answer_by, lease.id});
}

void ReclaimIndex::ForgetTenant(quota::TenantId tenant) {
  for (auto& [id, part] : parts_) part.tenants.erase(tenant);
}

const ReclaimIndex::Listed& ReclaimIndex::ListedIn(quota::PoolId pool) const {
  static const Listed& none = *new Listed;
  const auto part = parts_.find(pool);
  return part == parts_.end() ? none : part->second.listed;
}

std::optional<quota::LeaseId> ReclaimIndex::FirstOwn(quota::PoolId pool,
                                                     uint64_t session) const {
  const auto part = parts_.find(pool);
  if (part == parts_.end()) return std::nullopt;
  const auto first = part->second.own.lower_bound({session, quota::LeaseId{}});
  if (first == part->second.own.end() || first->first != session)
    return std::nullopt;
  return first->second;
}

bool ReclaimIndex::HasOverdue(quota::PoolId pool,
                              quota::TenantId tenant) const {
  const auto part = parts_.find(pool);
  if (part == parts_.end()) return false;
  const auto sums = part->second.tenants.find(tenant);
  return sums != part->second.tenants.end() && sums->second.overdue > 0;
}

uint64_t ReclaimIndex::IncomingBytes(quota::PoolId pool,
                                     std::optional<quota::TenantId> tenant,
                                     bool pausing) const {
  const auto part = parts_.find(pool);
  if (part == parts_.end()) return 0;
  const Sums* sums = &part->second.sums;
  if (tenant.has_value()) {
    const auto its = part->second.tenants.find(*tenant);
    if (its == part->second.tenants.end()) return 0;
    sums = &its->second;
  }
  return sums->coming_bytes + (pausing ? sums->awaiting_bytes : 0);
}

bool ReclaimIndex::AnyAwaitsPause(quota::PoolId pool) const {
  const auto part = parts_.find(pool);
  return part != parts_.end() && part->second.sums.awaiting_bytes > 0;
}

uint64_t ReclaimIndex::changes(quota::PoolId pool) const {
  const auto part = parts_.find(pool);
  return part == parts_.end() ? 0 : part->second.sums.changes;
}

uint64_t ReclaimIndex::gains(quota::PoolId pool) const {
  const auto part = parts_.find(pool);
  return part == parts_.end() ? 0 : part->second.gains;
}

uint64_t ReclaimIndex::changes(quota::PoolId pool,
                               quota::TenantId tenant) const {
  const auto part = parts_.find(pool);
  if (part == parts_.end()) return 0;
  const auto its = part->second.tenants.find(tenant);
  return its == part->second.tenants.end() ? 0 : its->second.changes;
}

void ReclaimIndex::MarkChanged(quota::PoolId pool, quota::TenantId tenant) {
  Part& part = parts_[pool];
  MarkLess(part, part.tenants[tenant]);
  part.gains = last_change_;
}

void ReclaimIndex::MarkChanged(quota::PoolId pool) {
  Part& part = parts_[pool];
  Mark(part.sums);
  part.gains = last_change_;
}

void ReclaimIndex::MarkLess(Part& part, Sums& its) {
  Mark(its);
  Mark(part.sums);
}

void ReclaimIndex::Mark(Sums& sums) {
  sums.changes = ++last_change_;
  woken_ |= std::exchange(sums.slept_on, false);
}

void ReclaimIndex::Sleep(quota::PoolId pool, quota::TenantId tenant) {
  Part& part = parts_[pool];
  (tenant.value == 0 ? part.sums : part.tenants[tenant]).slept_on = true;
}

}  // namespace gmb::broker
