#include "tests/quota/reclaim_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmb::quota {
namespace {

constexpr uint64_t kWholeBytes = uint64_t{1} << 30;

Nanoseconds Scaled(Nanoseconds time, double by) {
  return Nanoseconds(
      static_cast<int64_t>(static_cast<double>(time.count()) * by));
}

}  // namespace

ReclaimWorld::ReclaimWorld(const WorldOptions& options)
    : options_(options),
      engine_(EngineOptions{.max_handles = uint64_t{1} << 40}),
      budget_(options.backing) {
  if (options_.back_ahead || options_.use_forecast || options_.ahead.low > 0) {
    ++ticks_;
    At(now_ + options_.tick, [this] { Tick(); });
  }
}

void ReclaimWorld::At(Instant at, std::function<void()> what) {
  agenda_.emplace(std::make_pair(std::max(at, now_), ++last_step_),
                  std::move(what));
}

void ReclaimWorld::RunUntil(Instant until) {
  while (!stopped_ && !agenda_.empty() &&
         agenda_.begin()->first.first <= until) {
    Pass(agenda_.begin()->first.first);
    auto what = std::move(agenda_.begin()->second);
    agenda_.erase(agenda_.begin());
    what();
    LookForShortages();
    NoteWaits();
    ScheduleExpiry();
  }
  Pass(until);
}

void ReclaimWorld::RunOut() {
  while (!stopped_ && agenda_.size() > ticks_)
    RunUntil(agenda_.begin()->first.first);
}

void ReclaimWorld::ScheduleExpiry() {
  const auto next = engine_.NextDeadline();
  if (!next || (expiry_at_ && *expiry_at_ <= *next && *expiry_at_ > now_)) {
    return;
  }
  expiry_at_ = *next;
  At(*next, [this] { Tell(quota::Tick{}); });
}

void ReclaimWorld::Pass(Instant until) {
  if (until <= now_) return;
  const double seconds = static_cast<double>((until - now_).count()) * 1e-9;
  for (const auto& [id, row] : rows_) {
    if (row.evicted) continue;
    const auto bytes = static_cast<double>(row.bytes);
    figures_.resident_byte_seconds += bytes * seconds;
    if (sessions_.at(row.session).working > 0) {
      figures_.active_byte_seconds += bytes * seconds;
    }
  }
  now_ = until;
}

void ReclaimWorld::AddPool(PoolId pool, uint64_t bytes, uint64_t granularity) {
  Tell(PoolSet{pool, bytes, granularity});
}

void ReclaimWorld::AddTenant(TenantId tenant, const TenantSetup& setup) {
  tenants_[tenant] = setup;
  forecasts_.emplace(tenant, DemandForecast(options_.forecast));
  Tell(TenantSet{.tenant = tenant, .max_handles = 1 << 30});
  for (const PoolId pool : engine_.Pools()) {
    Tell(QuotaSet{pool, tenant, setup.quota});
  }
}

SessionId ReclaimWorld::AddSession(TenantId tenant, Manners manners) {
  const SessionId id{++last_session_};
  Session& session = sessions_[id];
  session.tenant = tenant;
  session.manners = manners;
  session.idle_since = now_;
  At(now_ + options_.costs.park_after, [this, id] { Park(id, 0); });
  return id;
}

void ReclaimWorld::SetMissing(PoolId pool, uint64_t bytes) {
  Tell(MissingChanged{.pool = pool, .missing_bytes = bytes});
}

bool ReclaimWorld::IsWorking(SessionId session) const {
  const auto it = sessions_.find(session);
  return it != sessions_.end() && it->second.working > 0;
}

std::vector<LeaseId> ReclaimWorld::LeasesOf(SessionId session) const {
  const auto it = sessions_.find(session);
  if (it == sessions_.end()) return {};
  return {it->second.leases.begin(), it->second.leases.end()};
}

void ReclaimWorld::Tell(const Event& event) {
  Apply(engine_.Handle(event, now_));
}

void ReclaimWorld::Apply(const Effects& effects) {
  for (const Effect& effect : effects) {
    if (const auto* granted = std::get_if<Granted>(&effect)) {
      OnGranted(*granted);
    } else if (const auto* denied = std::get_if<Denied>(&effect)) {
      OnDenied(*denied);
    } else if (const auto* restored = std::get_if<Restored>(&effect)) {
      OnRestored(*restored);
    }
  }
}

void ReclaimWorld::Served(Instant asked, const Done& done) {
  figures_.waits.push_back(now_ - asked);
  if (done) done(true);
}

uint64_t ReclaimWorld::HandlesOf(uint64_t bytes) const {
  return (bytes + kWholeBytes - 1) / kWholeBytes;
}

// One copy at a time in each direction; while the other one is busy, slower.
Instant ReclaimWorld::Copy(Way way, uint64_t bytes) {
  Instant& free_at = way == Way::kOut ? bus_out_free_at_ : bus_in_free_at_;
  const Instant other = way == Way::kOut ? bus_in_free_at_ : bus_out_free_at_;
  const Instant begin = std::max(free_at, now_);
  const double alone =
      static_cast<double>(bytes) * 1e9 /
      static_cast<double>(options_.costs.copy_bytes_per_second);
  const double rate = options_.costs.both_directions;
  const double shared =
      other > begin ? static_cast<double>((other - begin).count()) : 0;
  const double ns =
      alone <= shared * rate ? alone / rate : shared + (alone - shared * rate);
  free_at = begin + Nanoseconds(static_cast<int64_t>(ns));
  return free_at;
}

// As much as has been cleared since the last look.
void ReclaimWorld::Clear(PoolId pool) {
  Dirty& dirty = dirty_[pool];
  const auto passed = static_cast<double>((now_ - dirty.since).count());
  dirty.since = now_;
  if (dirty.waits || dirty.ns <= 0) return;
  const double left = std::max(0.0, 1 - passed / dirty.ns);
  dirty.bytes *= left;
  dirty.ns *= left;
}

void ReclaimWorld::NoteFreed(PoolId pool, uint64_t bytes) {
  Clear(pool);
  const WorldCosts& costs = options_.costs;
  const double size = static_cast<double>(std::min(bytes, kWholeBytes));
  const double handle_ns =
      std::min(static_cast<double>(costs.clear_handle_most.count()),
               size / (1 << 20) * static_cast<double>(costs.clear_mib.count()));
  dirty_[pool].bytes += static_cast<double>(bytes);
  dirty_[pool].ns += handle_ns * static_cast<double>(HandlesOf(bytes));
}

// Clear memory is granted first.
Instant ReclaimWorld::Cleared(PoolId pool, uint64_t bytes) {
  Clear(pool);
  Dirty& dirty = dirty_[pool];
  const PoolView view = *engine_.Pool(pool);
  const auto free = static_cast<double>(
      view.capacity_bytes - std::min(view.capacity_bytes, view.charged_bytes));
  const auto wanted = static_cast<double>(bytes);
  const double lacks = std::min(
      wanted - std::max(0.0, free + wanted - dirty.bytes), dirty.bytes);
  if (lacks <= 0) return now_;
  const double ns = dirty.ns * (lacks / dirty.bytes);
  dirty.ns -= ns;
  dirty.bytes -= lacks;
  return now_ + Nanoseconds(static_cast<int64_t>(ns));
}

void ReclaimWorld::Acquire(SessionId id, PoolId pool, uint64_t bytes, bool hard,
                           Contents contents, Nanoseconds wait, Done done) {
  if (!sessions_.contains(id)) return;
  const RequestId request{++last_request_};
  requests_[request] = {id, now_, false, contents, std::move(done)};
  Tell(quota::Acquire{.request = request,
                      .session = id,
                      .tenant = sessions_.at(id).tenant,
                      .pool = pool,
                      .bytes = bytes,
                      .handles = static_cast<uint32_t>(HandlesOf(bytes)),
                      .deadline = now_ + wait,
                      .hard = hard});
}

void ReclaimWorld::OnGranted(const Granted& granted) {
  const Request request = std::move(requests_.at(granted.request));
  requests_.erase(granted.request);
  Session& session = sessions_.at(granted.session);
  session.leases.insert(granted.lease);
  rows_[granted.lease] = {.lease = granted.lease,
                          .session = granted.session,
                          .tenant = granted.tenant,
                          .pool = granted.pool,
                          .bytes = granted.bytes,
                          .contents = engine_.Lease(granted.lease)->hard
                                          ? Contents::kResident
                                          : request.contents,
                          .gate = session.gate,
                          .host_room = true,
                          .busy = true,
                          .idle_since = session.idle_since,
                          .resident_since = now_};
  NoteFree(granted.pool);
  const Nanoseconds map =
      options_.costs.round_trip +
      static_cast<int64_t>(granted.handles) * options_.costs.map_handle;
  At(Cleared(granted.pool, granted.bytes) + map,
     [this, lease = granted.lease, request] {
       const auto row = rows_.find(lease);
       if (row == rows_.end()) return;
       row->second.busy = false;
       row->second.resident_since = now_;
       granted_ = lease;
       Served(request.asked, request.done);
     });
}

void ReclaimWorld::OnDenied(const Denied& denied) {
  const auto it = requests_.find(denied.request);
  if (it == requests_.end()) return;
  const Request request = std::move(it->second);
  requests_.erase(it);
  plans_.erase(denied.request);
  if (request.is_restore) {
    ++figures_.denied_restores;
    const auto session = sessions_.find(request.session);
    if (session == sessions_.end()) return;
    session->second.restoring = false;
    DenyPending(request.session);
    return;
  }
  ++figures_.denied;
  if (request.done) request.done(false);
}

void ReclaimWorld::DenyPending(SessionId id) {
  std::vector<PendingWork> pending =
      std::exchange(sessions_.at(id).pending, {});
  for (const PendingWork& work : pending) {
    ++figures_.denied;
    if (work.done) work.done(false);
  }
}

void ReclaimWorld::Work(SessionId id, Nanoseconds duration, Nanoseconds wait,
                        Done done) {
  if (!sessions_.contains(id)) return;
  Session& its = sessions_.at(id);
  const bool away =
      std::any_of(its.leases.begin(), its.leases.end(), [&](LeaseId lease) {
        return rows_.at(lease).evicted || victims_.contains(lease);
      });
  its.pending.push_back({duration, now_, now_ + wait, std::move(done), away});
  // A restore answers for itself; a pause, or an eviction under way, does not.
  At(now_ + wait, [this, id] {
    const auto session = sessions_.find(id);
    if (session == sessions_.end() || session->second.restoring) return;
    std::vector<PendingWork>& pending = session->second.pending;
    for (size_t i = pending.size(); i-- > 0;) {
      if (pending[i].deadline > now_) continue;
      const Done expired = pending[i].done;
      pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
      ++figures_.denied;
      if (expired) expired(false);
    }
  });
  TryToWork(id);
}

void ReclaimWorld::TryToWork(SessionId id) {
  const auto it = sessions_.find(id);
  if (it == sessions_.end()) return;
  Session& session = it->second;
  if (session.pending.empty() || session.pausing || session.restoring) return;
  if (session.gate == Gate::kClosed) StopTakingAhead(id);
  if (session.gate == Gate::kClosed) {
    // Leases on their way out go out first.
    for (const LeaseId lease : session.leases) {
      if (victims_.contains(lease) || rows_.at(lease).unmap_deadline <= now_)
        return;
    }
    AskToRestore(id);
    return;
  }
  StartWork(id);
}

void ReclaimWorld::SetGate(Session& session, Gate gate) {
  session.gate = gate;
  for (const LeaseId lease : session.leases) {
    rows_.at(lease).gate = gate;
    rows_.at(lease).idle_since = session.idle_since;
  }
}

void ReclaimWorld::Observe(TenantId tenant) {
  uint64_t needed = 0;
  for (const auto& [lease, row] : rows_) {
    const bool used =
        row.tenant == tenant && sessions_.at(row.session).working > 0;
    if (used) needed += row.bytes;
  }
  forecasts_.at(tenant).Observe(needed, now_);
}

void ReclaimWorld::StartWork(SessionId id) {
  Session& session = sessions_.at(id);
  std::vector<PendingWork> pending = std::exchange(session.pending, {});
  if (pending.empty()) return;
  ++session.epoch;
  if (session.used_at.has_value()) {
    const Nanoseconds gap = now_ - *session.used_at;
    session.usual_gap = session.usual_gap == Nanoseconds(0)
                            ? gap
                            : session.usual_gap + (gap - session.usual_gap) / 4;
  }
  session.used_at = now_;
  NoteReturn(session);
  for (const LeaseId lease : session.leases) rows_.at(lease).backed_bytes = 0;
  session.working += static_cast<int>(pending.size());
  SetGate(session, Gate::kActive);
  Observe(session.tenant);
  for (const PendingWork& work : pending) {
    At(now_ + work.duration, [this, id] { LeaveWork(id); });
    if (work.met_away) figures_.wakes.push_back(now_ - work.asked);
    Served(work.asked, work.done);
  }
}

void ReclaimWorld::LeaveWork(SessionId id) {
  const auto it = sessions_.find(id);
  if (it == sessions_.end() || --it->second.working > 0) return;
  Session& session = it->second;
  session.idle_since = now_;
  SetGate(session, Gate::kActive);
  const Nanoseconds after =
      session.pausing ? options_.costs.round_trip : options_.costs.park_after;
  At(now_ + after, [this, id, epoch = session.epoch] { Park(id, epoch); });
  Observe(session.tenant);
}

void ReclaimWorld::Park(SessionId id, uint64_t epoch) {
  const auto it = sessions_.find(id);
  if (it == sessions_.end()) return;
  Session& session = it->second;
  const bool parks = session.epoch == epoch && session.working == 0 &&
                     session.gate == Gate::kActive &&
                     session.manners != Manners::kNeverParks;
  if (!parks) return;
  SetGate(session, Gate::kParked);
  if (!session.pausing) return;
  session.pausing = false;
  Tell(SessionPausing{id, false});
  for (const LeaseId lease : LeasesOf(id)) {
    if (victims_.contains(lease)) {
      Evict(lease, now_ + options_.planner.unmap_grace);
    }
  }
  TryToWork(id);
}

void ReclaimWorld::AskToRestore(SessionId id) {
  Session& session = sessions_.at(id);
  session.restoring = true;
  Instant deadline = now_;
  for (const PendingWork& work : session.pending) {
    deadline = std::max(deadline, work.deadline);
  }
  const RequestId request{++last_request_};
  requests_[request] = {id, now_, true, Contents::kPreserve, {}};
  Tell(Restore{.request = request,
               .session = id,
               .leases = LeasesOf(id),
               .deadline = deadline});
}

void ReclaimWorld::OnRestored(const Restored& restored) {
  const auto it = requests_.find(restored.request);
  if (it == requests_.end()) return;
  const Request request = std::move(it->second);
  requests_.erase(it);
  sessions_.at(request.session).returning = true;
  std::vector<LeaseId> leases;
  uint64_t copied = 0, small = 0;
  std::map<PoolId, uint64_t> granted;
  Nanoseconds map{0}, last_map{0};
  for (const LeaseId lease : LeasesOf(request.session)) {
    LeaseRow& row = rows_.at(lease);
    if (!row.evicted) continue;
    leases.push_back(lease);
    row.evicted = false;
    row.busy = true;
    granted[row.pool] += row.bytes;
    if (row.bytes < kWholeBytes) small += row.bytes;
    if (row.contents == Contents::kPreserve) copied += row.bytes;
    last_map =
        static_cast<int64_t>(HandlesOf(row.bytes)) * options_.costs.map_handle;
    map += last_map;
  }
  figures_.copied_in_bytes += copied;
  // Slabs are made lease by lease, and clients map what is there while the next
  // one is filled: of these only the longest shows, and the last map.
  Nanoseconds made{0};
  for (const auto& [pool, bytes] : granted) {
    NoteFree(pool);
    made += Cleared(pool, bytes) - now_;
  }
  made = std::max(made, Scaled(options_.costs.create_gib,
                               static_cast<double>(small) / kWholeBytes));
  const Nanoseconds copying =
      copied > 0 ? Copy(Way::kIn, copied) - now_ : Nanoseconds(0);
  const Instant ready =
      now_ + last_map + options_.costs.round_trip +
      (options_.costs.creates_first ? std::max(made + copying, map)
                                    : std::max({made, copying, map}));
  At(ready, [this, id = request.session, leases, began = now_] {
    FinishRestore(id, leases, began);
  });
}

void ReclaimWorld::FinishRestore(SessionId id,
                                 const std::vector<LeaseId>& leases,
                                 Instant began) {
  const auto it = sessions_.find(id);
  if (it == sessions_.end()) return;
  for (const LeaseId lease : leases) {
    const auto row = rows_.find(lease);
    if (row == rows_.end()) continue;
    row->second.busy = false;
    row->second.resident_since = now_;
    row->second.restore_time = now_ - began;
  }
  it->second.restoring = false;
  it->second.returning = false;
  // Others of its leases may have been on their way out when it came back.
  const bool whole = std::none_of(
      it->second.leases.begin(), it->second.leases.end(), [&](LeaseId lease) {
        return rows_.at(lease).evicted || victims_.contains(lease);
      });
  SetGate(it->second, whole ? Gate::kParked : Gate::kClosed);
  TryToWork(id);
}

void ReclaimWorld::Release(LeaseId lease) {
  const auto row = rows_.find(lease);
  if (row == rows_.end()) return;
  Abandon(lease);
  if (!row->second.evicted) NoteFreed(row->second.pool, row->second.bytes);
  sessions_.at(row->second.session).leases.erase(lease);
  rows_.erase(lease);
  Tell(Released{lease});
}

void ReclaimWorld::Close(SessionId id) {
  if (!sessions_.contains(id)) return;
  Tell(SessionClosed{id});
  DenyPending(id);
  for (const LeaseId lease : LeasesOf(id)) Release(lease);
  sessions_.erase(id);
}

std::string ReclaimWorld::Check() const {
  std::map<PoolId, uint64_t> resident;
  for (const auto& [id, row] : rows_) {
    const auto view = engine_.Lease(id);
    if (!view) return absl::StrCat("lease ", id.value, " is not in the books");
    if (view->evicted != row.evicted) {
      return absl::StrCat("lease ", id.value, " is not where the books say");
    }
    if (!row.evicted) resident[row.pool] += row.bytes;
    const Session& session = sessions_.at(row.session);
    if (session.working > 0 && row.evicted) {
      return absl::StrCat("session ", row.session.value,
                          " works while its memory is evicted");
    }
  }
  for (const PoolId pool : engine_.Pools()) {
    const PoolView view = *engine_.Pool(pool);
    if (view.charged_bytes != resident[pool]) return "charged bytes are wrong";
    if (view.charged_bytes > view.capacity_bytes) {
      return "more is resident than the pool has";
    }
    if (view.missing_bytes == 0 && view.broken_bytes > 0) {
      return "guarantees and hard bytes exceed the pool";
    }
    uint64_t incoming = 0;
    for (const auto& [lease, victim] : victims_) {
      if (victim.first == pool) incoming += rows_.at(lease).bytes;
    }
    const auto known = incoming_.find(pool);
    if (incoming != (known == incoming_.end() ? 0 : known->second)) {
      return "victims and incoming bytes differ";
    }
  }
  return "";
}

}  // namespace gmb::quota
