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
#include "broker/machine/pool.h"
#include "broker/machine/reclaim_index.h"
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

// Everything that the machine knows. The machine changes it; reports and
// plans read it.
//
// A value without threads or locks: the core guards it.
struct State {
  // `host_pool_bytes`: 0 without a host pool.
  State(MachineOptions machine_options, uint64_t host_pool_bytes);

  // They must be there: what holds an id is removed with what it names.
  [[nodiscard]] Pool& PoolAt(quota::PoolId id) const;
  [[nodiscard]] Session& SessionAt(uint64_t id) const;
  [[nodiscard]] Lease& LeaseAt(quota::LeaseId id) const;
  [[nodiscard]] const Tenant& TenantAt(quota::TenantId id) const;
  [[nodiscard]] Tenant& TenantAt(quota::TenantId id);
  // By its UUID; empty names the only one. Null: there is none or, with an
  // empty name, there are several.
  [[nodiscard]] Pool* FindPool(absl::string_view device) const;

  const MachineOptions options;
  quota::Engine engine;
  std::map<quota::PoolId, std::unique_ptr<Pool>> pools;
  TenantTable tenants;
  SessionTable sessions;
  SessionGroups groups;
  SharedNames shared_names;
  // Acquires that the engine has not answered. (A tree, as whatever tenants
  // make many of: a hash table would move all of them when it grows.)
  absl::btree_map<quota::RequestId, PendingAcquire> pending;
  // By their ids, so that a report can go on where it stopped.
  absl::btree_map<quota::LeaseId, std::unique_ptr<Lease>> leases;
  uint64_t next_request = 1;
  uint64_t next_pool = 1;
  // What is where in the host pool.
  HostBooks host_books;
  uint64_t last_copy_group = 0;
  // Leases being evicted or restored; sessions being paused; sessions whose
  // Restores are not answered; the engine's requests for those.
  std::set<quota::LeaseId> moving;
  OwedAnswers owed;
  std::set<uint64_t> pausing;
  std::set<uint64_t> waking;
  // Until when each of those Restores waits: session and request.
  std::set<std::tuple<quota::Instant, uint64_t, uint64_t>> restore_times;
  absl::btree_map<quota::RequestId, Returning> restoring;
  // Sessions whose processes were killed, and when they should be dead.
  std::map<uint64_t, quota::Instant> terminating;
  std::set<std::pair<quota::Instant, uint64_t>> dying;  // of these, in time
  // What plans need of all leases, and how much of it is looked at.
  ReclaimIndex reclaim;
  LookBudget look_budget;
  GateWatchList gate_watch;
  quota::Instant pauses_at;     // the next look at sessions that are paused
  uint64_t next_pause = 0;      // and at whom it begins
  std::set<uint64_t> trimmers;  // who could give back, or was asked to
  quota::Instant standing_at;   // the next look at a standing demand
  quota::BackingBudget backing_budget;
  quota::Instant backing_at;  // the next look
  BackingPass backing_pass;
  // Shared leases that have not ended, dropped ones too; by tenant.
  std::set<std::pair<quota::TenantId, quota::LeaseId>> shared_leases;
  AskedBack asked_back;
  std::list<StandingDemand> standing;
  std::map<quota::TenantId, Departure> departures;
  bool stopping = false;
  std::optional<absl::Time> drain_until;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_STATE_H_
