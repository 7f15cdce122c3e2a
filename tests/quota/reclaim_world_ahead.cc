// The world's memory ahead of need, and what came of it.
#include <algorithm>
#include <utility>

#include "tests/quota/reclaim_world.h"

namespace gmb::quota {

void ReclaimWorld::NoteWaits() {
  for (const PoolId pool : engine_.Pools()) {
    const bool waits = engine_.NextShortage(pool, 0).has_value();
    if (waits) waited_at_[pool] = now_;
    if (waits == dirty_[pool].waits) continue;
    Clear(pool);
    dirty_[pool].waits = waits;
  }
}

void ReclaimWorld::NoteFree(PoolId pool) {
  const PoolView view = *engine_.Pool(pool);
  const uint64_t free =
      view.capacity_bytes - std::min(view.capacity_bytes, view.charged_bytes);
  for (auto& [id, session] : sessions_) {
    if (session.ahead_bytes > 0)
      session.least_free_bytes = std::min(session.least_free_bytes, free);
  }
}

// It is in use. If there was always so much free as was taken from it, nobody
// had anything of that.
void ReclaimWorld::NoteReturn(Session& session) {
  session.taken_ahead = false;
  session.brought_back.reset();
  if (session.ahead_bytes > 0 &&
      session.least_free_bytes >= session.ahead_bytes)
    ++figures_.regretted;
  session.ahead_bytes = 0;
}

void ReclaimWorld::GoAhead(PoolId pool) {
  if (options_.ahead.low <= 0) return;
  const PoolView view = *engine_.Pool(pool);
  AheadPool known{.pool = pool,
                  .capacity_bytes = view.capacity_bytes,
                  .free_bytes = view.capacity_bytes - view.charged_bytes,
                  .incoming_bytes = incoming_[pool],
                  .anybody_waits = engine_.waiting() > 0,
                  .waited_at = std::nullopt};
  if (waited_at_.contains(pool)) known.waited_at = waited_at_.at(pool);
  std::vector<AheadSession> sessions;
  for (const auto& [id, session] : sessions_) {
    sessions.push_back({.session = id,
                        .taken = session.taken_ahead,
                        .brought_back = session.brought_back,
                        .used_at = session.used_at,
                        .usual_gap = session.usual_gap});
  }
  const Snapshot snapshot = TakeSnapshot();
  for (const LeaseId lease : TakeAhead(snapshot, known, sessions, now_,
                                       options_.ahead, options_.planner))
    TakeAheadOf(pool, lease);
  const auto back = BringBackAhead(snapshot, known, sessions, now_,
                                   options_.ahead, options_.planner);
  if (!back.has_value() || sessions_.at(*back).restoring) return;
  ++figures_.brought_back;
  Session& session = sessions_.at(*back);
  const bool taken = session.taken_ahead;
  NoteReturn(session);
  session.taken_ahead = taken;
  session.brought_back = now_;
  AskToRestore(*back);
}

void ReclaimWorld::TakeAheadOf(PoolId pool, LeaseId lease) {
  LeaseRow& row = rows_.at(lease);
  Session& session = sessions_.at(row.session);
  if (!std::exchange(session.taken_ahead, true)) ++figures_.taken_ahead;
  if (session.brought_back.has_value()) ++figures_.brought_back_unused;
  session.brought_back.reset();
  figures_.taken_ahead_bytes += row.bytes;
  if (session.ahead_bytes == 0) session.least_free_bytes = ~uint64_t{0};
  session.ahead_bytes += row.bytes;
  victims_[lease] = {pool, RequestId{0}};
  incoming_[pool] += row.bytes;
  going_ahead_.insert(lease);
  Evict(lease, now_ + options_.planner.unmap_grace);
}

// The session is wanted, and nobody else asked for its memory: what is still
// being copied stays.
void ReclaimWorld::StopTakingAhead(SessionId id) {
  bool stopped = false;
  bool away = false;
  for (const LeaseId lease : LeasesOf(id)) {
    if (going_ahead_.contains(lease)) {
      LeaseRow& row = rows_.at(lease);
      const PoolId pool = row.pool;
      if (engine_.NextShortage(pool, incoming_[pool] - row.bytes)) continue;
      row.unmap_deadline = Instant::Max();
      Abandon(lease);
      bus_out_free_at_ = now_;
      stopped = true;
    }
    away |= rows_.at(lease).evicted || victims_.contains(lease);
  }
  if (stopped && !away) SetGate(sessions_.at(id), Gate::kParked);
}

}  // namespace gmb::quota
