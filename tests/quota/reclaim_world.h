// A small broker in simulated time: the real engine, planner, backing policy
// and forecast, with clients that work, park, are evicted and come back.
// Property tests and the simulator drive it.
//
// Time costs what docs/performance.md and the design's facts say: copies share
// one bus in each direction, handles are mapped and unmapped one by one.
#ifndef GMB_TESTS_QUOTA_RECLAIM_WORLD_H_
#define GMB_TESTS_QUOTA_RECLAIM_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "quota/backing.h"
#include "quota/engine.h"
#include "quota/planner.h"
#include "tests/quota/ahead.h"
#include "tests/quota/forecast.h"

namespace gmb::quota {

struct WorldCosts {
  uint64_t copy_bytes_per_second = 55'000'000'000;
  Nanoseconds map_handle = std::chrono::microseconds(90);    // import .. access
  Nanoseconds unmap_handle = std::chrono::microseconds(40);  // and release
  // Slabs that were freed are destroyed and cleared before their bytes can be
  // granted again: a handle, by its size, up to the most (20 ms for 8 GiB). It
  // goes on by itself while nobody waits, and for a request when all that it
  // needs is there.
  Nanoseconds clear_mib = std::chrono::nanoseconds(6500);
  Nanoseconds clear_handle_most = std::chrono::microseconds(2400);
  // Slabs smaller than a whole one that come back are created: beside the
  // copies, or before them.
  Nanoseconds create_gib = std::chrono::microseconds(2600);
  bool creates_first = false;
  // While both directions are busy each has less of the bus (101.7 of 110.8).
  double both_directions = 0.92;
  Nanoseconds round_trip = std::chrono::microseconds(100);
  Nanoseconds park_after = std::chrono::milliseconds(5);
  Nanoseconds death = std::chrono::milliseconds(61);
};

struct WorldOptions {
  PlannerOptions planner;
  BackingOptions backing;
  AheadOptions ahead;
  ForecastOptions forecast;
  bool reclaim = true;
  bool back_ahead = false;
  bool use_forecast = false;  // for what to back and to restore ahead
  Nanoseconds back_off = std::chrono::seconds(10);
  Nanoseconds tick = std::chrono::milliseconds(100);  // of backing ahead
  WorldCosts costs;
  // Stands between the planner and the world, to see a mistake found.
  std::function<Plan(const Snapshot&, const Demand&, Instant)> plan;
};

struct TenantSetup {
  TenantQuota quota;
  bool may_terminate = false;
  Nanoseconds min_residency{0};
  Nanoseconds pause_grace = std::chrono::seconds(5);
};

// How a session answers when it is asked to.
enum class Manners { kAnswers, kNeverUnmaps, kNeverParks };

class ReclaimWorld {
 public:
  // `served` is false when the request was denied.
  using Done = std::function<void(bool served)>;
  // Called before a plan is carried out; false stops the world.
  using Watch =
      std::function<bool(const Snapshot&, const Demand&, Instant, const Plan&)>;

  struct Figures {
    std::vector<Nanoseconds> waits;  // of work and leases that were served
    uint64_t denied = 0;
    uint64_t denied_restores = 0;
    uint64_t evictions = 0;
    uint64_t evicted_bytes = 0;
    uint64_t copied_out_bytes = 0;
    uint64_t copied_in_bytes = 0;
    uint64_t backed_ahead_bytes = 0;
    std::vector<Nanoseconds> wakes;  // of sessions that were away, until in
    uint64_t taken_ahead = 0;        // sessions whose memory left ahead
    uint64_t taken_ahead_bytes = 0;
    uint64_t regretted = 0;  // that came back before anybody used the bytes
    uint64_t brought_back = 0;
    uint64_t brought_back_unused = 0;  // taken again before they were used
    uint64_t pauses = 0;
    uint64_t pauses_withdrawn = 0;
    uint64_t kills = 0;
    uint64_t plans = 0;
    double resident_byte_seconds = 0;
    double active_byte_seconds = 0;
  };

  explicit ReclaimWorld(const WorldOptions& options);

  void AddPool(PoolId pool, uint64_t bytes, uint64_t granularity_bytes);
  void AddTenant(TenantId tenant, const TenantSetup& setup);
  SessionId AddSession(TenantId tenant, Manners manners = Manners::kAnswers);

  void At(Instant at, std::function<void()> what);
  // Runs everything that is due until then, in order.
  void RunUntil(Instant until);
  // Until nothing is left to be done.
  void RunOut();

  // A lease for the session; it counts as used while the session works.
  void Acquire(SessionId session, PoolId pool, uint64_t bytes, bool hard,
               Contents contents, Nanoseconds wait, Done done);
  // Enters the gate, waits for all its leases to be resident, works, leaves.
  void Work(SessionId session, Nanoseconds duration, Nanoseconds wait,
            Done done);
  void Release(LeaseId lease);
  void Close(SessionId session);
  void SetMissing(PoolId pool, uint64_t bytes);

  void set_watch(Watch watch) { watch_ = std::move(watch); }
  // Within the `done` of an Acquire that was served: its lease.
  LeaseId granted() const { return granted_; }
  Instant now() const { return now_; }
  const Engine& engine() const { return engine_; }
  const Figures& figures() const { return figures_; }
  bool IsAlive(SessionId session) const { return sessions_.contains(session); }
  bool IsWorking(SessionId session) const;
  std::vector<LeaseId> LeasesOf(SessionId session) const;
  // Says what does not fit together; empty if all is well.
  std::string Check() const;

 private:
  struct PendingWork {
    Nanoseconds duration{};
    Instant asked{};
    Instant deadline{};
    Done done;
    bool met_away = false;  // leases of the session were evicted
  };
  struct Session {
    TenantId tenant;
    Manners manners = Manners::kAnswers;
    Gate gate = Gate::kActive;
    uint64_t epoch = 0;  // of the gate word
    int working = 0;
    bool pausing = false;
    Instant not_paused_before{};  // its last pause has failed
    bool restoring = false;       // waits for it, or it is under way
    bool returning = false;       // it is under way
    Instant idle_since{};
    std::optional<Instant> used_at;  // when it last began to work
    Nanoseconds usual_gap{0};
    std::vector<PendingWork> pending;
    std::set<LeaseId> leases;
    // Ahead of need.
    bool taken_ahead = false;
    std::optional<Instant> brought_back;
    uint64_t ahead_bytes = 0;       // taken ahead, and away
    uint64_t least_free_bytes = 0;  // in its pool since then
  };
  struct Request {
    SessionId session;
    Instant asked{};
    bool is_restore = false;
    Contents contents = Contents::kPreserve;
    Done done;
  };

  void Tell(const Event& event);
  void Apply(const Effects& effects);
  void OnGranted(const Granted& granted);
  void OnDenied(const Denied& denied);
  void OnRestored(const Restored& restored);
  void Served(Instant asked, const Done& done);

  void TryToWork(SessionId id);
  void StartWork(SessionId id);
  void LeaveWork(SessionId id);
  void Park(SessionId id, uint64_t epoch);
  void AskToRestore(SessionId id);
  void FinishRestore(SessionId id, const std::vector<LeaseId>& leases,
                     Instant began);
  void DenyPending(SessionId id);

  void LookForShortages();
  void CarryOut(RequestId request, const Plan& plan);
  void Begin(const Victim& victim, RequestId request, PoolId pool);
  void Evict(LeaseId lease, Instant deadline);
  void FinishEviction(LeaseId lease);
  void FailEviction(LeaseId lease);
  void Pause(const Victim& victim);
  void WithdrawPause(LeaseId lease);
  void Kill(SessionId id);
  void Abandon(LeaseId lease);  // a victim that will not come

  void Tick();
  void BackAhead(PoolId pool);
  void RestoreAhead();
  // reclaim_world_ahead.cc.
  void GoAhead(PoolId pool);
  void TakeAheadOf(PoolId pool, LeaseId lease);
  void StopTakingAhead(SessionId id);
  void NoteWaits();
  void NoteFree(PoolId pool);
  void NoteReturn(Session& session);
  Snapshot TakeSnapshot();
  void Observe(TenantId tenant);
  void Pass(Instant until);
  void ScheduleExpiry();
  // When a copy that is asked for now will be done.
  enum class Way { kOut, kIn };
  Instant Copy(Way way, uint64_t bytes);
  // When so many bytes that were granted now are cleared.
  Instant Cleared(PoolId pool, uint64_t bytes);
  void NoteFreed(PoolId pool, uint64_t bytes);
  void Clear(PoolId pool);
  uint64_t HandlesOf(uint64_t bytes) const;
  void SetGate(Session& session, Gate gate);

  const WorldOptions options_;
  Engine engine_;
  Instant now_;
  uint64_t last_step_ = 0;
  std::map<std::pair<Instant, uint64_t>, std::function<void()>> agenda_;
  size_t ticks_ = 0;  // of the agenda: they alone keep nothing going
  Instant bus_out_free_at_, bus_in_free_at_;
  std::map<TenantId, TenantSetup> tenants_;
  std::map<SessionId, Session> sessions_;
  std::map<LeaseId, LeaseRow> rows_;
  std::map<RequestId, Request> requests_;
  std::map<PoolId, uint64_t> incoming_;  // of victims under way
  std::map<LeaseId, std::pair<PoolId, RequestId>> victims_;
  std::map<RequestId, size_t> plans_;  // victims not done yet
  std::map<PoolId, Instant> retry_at_;
  // Bytes that were freed, and how long it takes to clear them.
  struct Dirty {
    double bytes = 0;
    double ns = 0;
    Instant since{};
    bool waits = false;  // somebody waits for memory since then
  };
  std::map<PoolId, Dirty> dirty_;
  std::map<PoolId, Instant> waited_at_;
  std::set<LeaseId> going_ahead_;  // victims that nobody asked for
  // Of each lease: one that was stopped ends when it would have ended.
  std::map<LeaseId, uint64_t> evictions_begun_;
  std::map<TenantId, DemandForecast> forecasts_;
  BackingBudget budget_;
  bool backing_ = false;
  bool looking_ = false;
  bool stopped_ = false;
  std::optional<Instant> expiry_at_;
  LeaseId granted_;
  uint64_t last_session_ = 0;
  uint64_t last_request_ = 0;
  std::vector<LeaseRow> snapshot_leases_;
  std::vector<TenantRow> snapshot_tenants_;
  Watch watch_;
  Figures figures_;
};

}  // namespace gmb::quota

#endif  // GMB_TESTS_QUOTA_RECLAIM_WORLD_H_
