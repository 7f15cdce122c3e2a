#ifndef GMB_BROKER_MACHINE_STATE_H_
#define GMB_BROKER_MACHINE_STATE_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "broker/hostpool/host_books.h"
#include "broker/machine/asked_back.h"
#include "broker/machine/backing_pass.h"
#include "broker/machine/departure.h"
#include "broker/machine/gate_watch_list.h"
#include "broker/machine/lease.h"
#include "broker/machine/look.h"
#include "broker/machine/machine_options.h"
#include "broker/machine/owed_answers.h"
#include "broker/machine/owned.h"
#include "broker/machine/owners.h"
#include "broker/machine/pause_round.h"
#include "broker/machine/pool.h"
#include "broker/machine/put_offs.h"
#include "broker/machine/reclaim_index.h"
#include "broker/machine/record_news.h"
#include "broker/machine/room_look.h"
#include "broker/machine/session.h"
#include "broker/machine/session_groups.h"
#include "broker/machine/session_table.h"
#include "broker/machine/shared_names.h"
#include "broker/machine/standing_demand.h"
#include "broker/machine/tenant_table.h"
#include "quota/backing.h"
#include "quota/engine.h"
#include "quota/units.h"

namespace gmb::broker {

// An engine's Restore that is not answered yet.
struct Returning {
  uint64_t session = 0;                      // that asks
  std::optional<quota::LeaseId> for_attach;  // and does not have it yet
};

// Everything that the machine knows, each part with the owner that changes it;
// reports and plans read it.
//
// A value without threads or locks: the core guards it. A copy shares nothing
// with it but the pages of gates.
struct State {
  // `host_pool_bytes`: 0 without a host pool.
  State(MachineOptions machine_options, uint64_t host_pool_bytes);
  // Compiled once: what is implicit is compiled by each source that needs it.
  State(const State& other);
  ~State();

  // They must be there: what holds an id is removed with what it names.
  [[nodiscard]] Pool& PoolAt(quota::PoolId id) const;
  [[nodiscard]] Session& SessionAt(uint64_t id) const;
  [[nodiscard]] Lease& LeaseAt(quota::LeaseId id) const;
  [[nodiscard]] const Tenant& TenantAt(quota::TenantId id) const;
  // By its UUID; empty names the only one. Null: there is none or, with an
  // empty name, there are several.
  [[nodiscard]] Pool* FindPool(absl::string_view device) const;

  const MachineOptions options;
  // The turn's changes of what is recorded.
  Owned<RecordNews, Recorder> record_news;
  // All that plans need to know of all leases.
  Owned<ReclaimIndex, IndexKeeper> reclaim;

  Owned<quota::Engine, QuotaDesk> engine;
  Owned<uint64_t, QuotaDesk> next_request;

  Owned<SessionTable, SessionDesk> sessions;
  // Sessions whose processes were killed, and when they should be dead.
  Owned<std::map<uint64_t, quota::Instant>, SessionDesk> terminating;
  // Of these, in time.
  Owned<std::set<std::pair<quota::Instant, uint64_t>>, SessionDesk> dying;
  // Sessions that have ended and still have leases, which come back some in a
  // turn.
  Owned<std::set<uint64_t>, SessionDesk> ended_sessions;
  Owned<SessionGroups, Gates> groups;

  Owned<std::map<quota::PoolId, Placed<Pool>>, PoolKeeper> pools;

  // How much of the leases is looked at, and gates that may park some time.
  Owned<LookBudget, Lookout> look_budget;
  Owned<GateWatchList, Lookout> gate_watch;

  // The places of leases in the host pool.
  Owned<HostBooks, HostDesk> host_books;
  Owned<uint64_t, HostDesk> last_copy_group;
  Owned<quota::BackingBudget, Backer> backing_budget;
  Owned<quota::Instant, Backer> backing_at;  // the next look
  Owned<BackingPass, Backer> backing_pass;

  Owned<OwedAnswers, DebtDesk> owed;

  // By their ids, so that a report can go on where it stopped.
  Owned<absl::btree_map<quota::LeaseId, Placed<Lease>>, LeaseDesk> leases;
  // Leases being evicted or restored, and those that have ended and are still
  // being copied; by tenant.
  Owned<std::set<std::pair<quota::TenantId, quota::LeaseId>>, LeaseMover>
      moving;
  Owned<SharedNames, Sharing> shared_names;
  // Shared leases that have not ended, dropped ones too; by tenant.
  Owned<std::set<std::pair<quota::TenantId, quota::LeaseId>>, Sharing>
      shared_leases;

  // Acquires, and Restores, that the engine has not answered. (Trees, as
  // whatever tenants make many of: a hash table would move all of them when it
  // grows.)
  Owned<absl::btree_map<quota::RequestId, PendingAcquire>, RequestDesk> pending;
  Owned<PutOffs, RequestDesk> put_off;            // those of them that are
  Owned<quota::Instant, RequestDesk> put_off_at;  // none of them before
  Owned<RoomLook, RequestDesk> room_look;
  Owned<absl::btree_map<quota::RequestId, Returning>, Recalls> restoring;
  Owned<AskedBack, Recalls> asked_back;
  // Leases that are put off, and when each may be asked back again.
  Owned<std::set<std::pair<quota::Instant, quota::LeaseId>>, Recalls>
      restores_put_off;
  // Sessions whose Restores are not answered; sessions being paused.
  Owned<std::set<uint64_t>, Waker> waking;
  // At leases, to see what a session waits for, in all.
  Owned<uint64_t, Waker> away_looks;
  // Until when each of those Restores waits: session and request.
  Owned<std::set<std::tuple<quota::Instant, uint64_t, uint64_t>>, Waker>
      restore_times;
  Owned<std::set<uint64_t>, Gatekeeper> pausing;
  // The next look at sessions that are paused.
  Owned<quota::Instant, Gatekeeper> pauses_at;
  Owned<PauseRound, Gatekeeper> pause_round;

  Owned<std::list<StandingDemand>, Reclaimer> standing;
  Owned<quota::Instant, Reclaimer> standing_at;  // the next look at one
  // Sessions that could give back, or were asked to.
  Owned<std::set<uint64_t>, Reclaimer> trimmers;
  // Those that were asked and have not answered.
  Owned<std::set<uint64_t>, Reclaimer> trimming;

  Owned<TenantTable, OperatorDesk> tenants;
  Owned<std::map<quota::TenantId, Departure>, OperatorDesk> departures;
  Owned<bool, OperatorDesk> stopping;
  Owned<std::optional<absl::Time>, OperatorDesk> drain_until;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_STATE_H_
