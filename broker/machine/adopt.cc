// A broker takes over from the one before it: sessions, leases, contents; and
// what was under way goes on.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "broker/machine/adopt_check.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/recorder.h"
#include "broker/machine/wanted_back.h"
#include "quota/must_find.h"

namespace gmb::broker {
namespace {

quota::AdoptedLease ChargeOf(const State& state, const LeaseRecord& record) {
  const Pool& pool = *state.FindPool(record.device);
  const bool evicted = record.place == LeaseRecord::Place::kHost;
  return {
      .id = quota::LeaseId{record.id},
      .lease = {.session = quota::SessionId{record.shared ? 0 : record.session},
                .tenant = state.tenants->Find(record.tenant)->id,
                .pool = pool.id,
                .bytes = record.bytes,
                .handles = static_cast<uint32_t>(
                    evicted ? pool.slabs->HandlesFor(record.bytes)
                            : record.slabs.size()),
                .hard = !evicted && !record.soft,
                .evicted = evicted}};
}

// Puts what another broker has left into the state, each part by its owner.
class Successor {
 public:
  struct Desks {
    QuotaDesk& quota;
    SessionDesk& sessions;
    Gates& gates;
    PoolKeeper& pools;
    HostDesk& host;
    LeaseMover& mover;
    LeaseDesk& leases;
    Sharing& sharing;
  };
  Successor(State& state, const Desks& desks, const Adoption& adoption,
            Turn& turn)
      : state_(state), desks_(desks), adoption_(adoption), turn_(turn) {}

  void TakeOver() {
    HeadRecord head = adoption_.head;
    ++head.generation;
    // All of it is written down anew, or as ended.
    Recorder recorder(state_);
    recorder.SetHead(head);
    for (const AdoptedSession& session : adoption_.sessions)
      recorder.TouchSession(session.record.id);
    for (const LeaseRecord& lease : adoption_.leases)
      recorder.Touch(quota::LeaseId{lease.id});
    desks_.sessions.SkipIdsTo(head.session_ids_until);
    desks_.quota.Adopt({}, head.lease_ids_until, turn_);
    for (const PoolRecord& record : adoption_.pools) TakePool(record);
    for (const AdoptedSession& session : adoption_.sessions) {
      const absl::Status taken = TakeSession(session, head);
      if (!taken.ok())
        refused_.push_back({session.record.id, std::string(taken.message())});
    }
    TakeLeases(head);
    // Work on all of them at once is no record's.
    if (adoption_.takes_session != nullptr) adoption_.takes_session({});
  }
  // Sessions that were refused, and leases that were kept without one.
  [[nodiscard]] std::vector<NotAdopted> TakeRefused() {
    return std::exchange(refused_, {});
  }
  // Sessions that are there, and have lost a lease; and why.
  [[nodiscard]] const std::map<uint64_t, std::string>& lost() const {
    return lost_;
  }

 private:
  void TakePool(const PoolRecord& record) {
    Pool* pool =
        record.device.empty() ? nullptr : state_.FindPool(record.device);
    if (pool == nullptr) return;
    if (record.draining) desks_.pools.SetDraining(pool, true, turn_);
    desks_.pools.AdoptDebts(pool, record.debts, turn_);
  }

  absl::Status TakeSession(const AdoptedSession& adopted,
                           const HeadRecord& head) {
    const SessionRecord& record = adopted.record;
    if (adoption_.takes_session != nullptr) adoption_.takes_session(record);
    const Tenant* tenant = state_.tenants->Find(record.tenant);
    if (tenant == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("its tenant is no more: tenant=", record.tenant));
    }
    // Whether its process has read the Welcome nobody knows; it has nothing yet.
    if (record.greeting) {
      return absl::UnavailableError(
          "it was being greeted when the broker died: its process is to "
          "connect again");
    }
    if (adopted.gate == nullptr)
      return absl::DataLossError("the page of its gate was not kept");
    Session* session =
        desks_.sessions.Adopt(adopted, tenant->id, head.generation,
                              state_.engine->last_lease(), turn_);
    if (session == nullptr)
      return absl::DataLossError("its id, or its token, is another session's");
    desks_.gates.Adopt(session, record);
    return absl::OkStatus();
  }

  // The books first, all at once; then the leases; then what was under way,
  // which may concern several.
  void TakeLeases(const HeadRecord& head) {
    std::vector<LeaseRecord> taken;
    std::vector<quota::AdoptedLease> charges;
    std::vector<LeaseRecord> refused;
    for (LeaseRecord record : adoption_.leases) {
      Takes(record);
      if (!KeepWhatLives(state_, &record)) {
        refused.push_back(std::move(record));  // its session has ended
        continue;
      }
      if (const absl::Status sound = CheckLease(record); !sound.ok()) {
        Lose(record, sound);
        refused.push_back(std::move(record));
        continue;
      }
      charges.push_back(ChargeOf(state_, record));
      taken.push_back(std::move(record));
    }
    desks_.quota.Adopt(charges, head.lease_ids_until, turn_);
    for (const LeaseRecord& record : taken) {
      Takes(record);
      TakeLease(record);
    }
    for (const LeaseRecord& record : refused) RefuseSlabs(record);
    for (const LeaseRecord& record : taken) {
      Takes(record);
      desks_.mover.GoOnWith(&state_.LeaseAt(quota::LeaseId{record.id}),
                            record.place, turn_);
    }
  }

  void Takes(const LeaseRecord& record) const {
    if (adoption_.takes_lease != nullptr) adoption_.takes_lease(record);
  }

  absl::Status CheckLease(const LeaseRecord& record) {
    const absl::Status sound =
        CheckRecord(state_, record, adoption_, &slabs_taken_);
    if (!sound.ok()) return sound;
    if (desks_.host.Adopt(state_.tenants->Find(record.tenant)->id, record))
      return absl::OkStatus();
    for (const SlabRecord& slab : record.slabs) slabs_taken_.erase(slab.id);
    return absl::ResourceExhaustedError(
        "the host pool has no room for it: is it smaller than it was?");
  }

  void TakeLease(const LeaseRecord& record) {
    std::vector<Slab> slabs;
    for (const SlabRecord& slab : record.slabs) {
      const auto imported = adoption_.slabs.find(slab.id);
      if (imported == adoption_.slabs.end())  // CheckLease has found it
        quota::EndForBrokenBooks("slab", slab.id, __FILE__, __LINE__);
      slabs.push_back(imported->second);
    }
    Lease* lease = desks_.leases.Adopt(
        record, state_.tenants->Find(record.tenant)->id,
        desks_.quota.NextRequest(), std::move(slabs), turn_);
    desks_.pools.Adopt(*lease);
    for (const MappingRecord& mapping : record.mappings) {
      desks_.mover.AddUser(lease, {.session = mapping.session,
                                   .request = mapping.request,
                                   .mapped = mapping.mapped,
                                   .unmapped = mapping.unmapped,
                                   .asked = mapping.asked});
      SessionDesk::ExpectAgain(&state_.SessionAt(mapping.session),
                               mapping.request, lease->id);
    }
    desks_.sharing.Adopt(lease);
  }

  // Refuses the slabs that no lease that was taken has either.
  void RefuseSlabs(const LeaseRecord& record) {
    Pool* pool =
        record.device.empty() ? nullptr : state_.FindPool(record.device);
    if (pool == nullptr) return;  // nobody imported them
    std::vector<Slab> slabs;
    for (const SlabRecord& slab : record.slabs) {
      const auto imported = adoption_.slabs.find(slab.id);
      if (imported != adoption_.slabs.end() &&
          slabs_taken_.insert(slab.id).second)
        slabs.push_back(imported->second);
    }
    const Tenant* tenant = state_.tenants->Find(record.tenant);
    desks_.pools.Refuse(
        pool, slabs,
        tenant == nullptr ? std::nullopt : std::optional(tenant->id), turn_);
  }

  void Lose(const LeaseRecord& record, const absl::Status& why) {
    const std::string text = absl::StrCat(
        "a lease could not be taken over from the broker before: lease=",
        record.id, ": ", why.message());
    if (record.mappings.empty()) refused_.push_back({0, text});
    for (const MappingRecord& mapping : record.mappings)
      lost_.emplace(mapping.session, text);
  }

  State& state_;
  const Desks desks_;
  const Adoption& adoption_;
  Turn& turn_;
  std::set<SlabId> slabs_taken_;
  std::vector<NotAdopted> refused_;
  std::map<uint64_t, std::string> lost_;
};

}  // namespace

std::vector<NotAdopted> Machine::Adopt(const Adoption& adoption, Turn& turn) {
  Successor successor(state_,
                      {.quota = quota_,
                       .sessions = sessions_,
                       .gates = gates_,
                       .pools = pools_,
                       .host = host_,
                       .mover = mover_,
                       .leases = leases_,
                       .sharing = sharing_},
                      adoption, turn);
  successor.TakeOver();
  std::vector<NotAdopted> not_adopted = successor.TakeRefused();
  for (const auto& [session, why] : successor.lost()) {
    CloseSession(session, why, turn);
    not_adopted.push_back({session, why});
  }
  // Tenants and pools were there before anything was held.
  for (const auto& [id, pool] : *state_.pools)
    reclaimer_.AddStanding(DemandsOf(state_, id), turn);
  return not_adopted;
}

}  // namespace gmb::broker
