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

namespace gmb::broker {
namespace {

// Sessions that end, because a lease of theirs is lost; and why.
class Lost {
 public:
  void Add(const LeaseRecord& record, const absl::Status& why) {
    const std::string text = absl::StrCat(
        "a lease of it could not be taken over from the last broker: lease=",
        record.id, ": ", why.message());
    if (record.mappings.empty()) without_session_.push_back(text);
    for (const MappingRecord& mapping : record.mappings)
      sessions_.emplace(mapping.session, text);
  }
  [[nodiscard]] const std::map<uint64_t, std::string>& sessions() const {
    return sessions_;
  }
  [[nodiscard]] const std::vector<std::string>& without_session() const {
    return without_session_;
  }

 private:
  std::map<uint64_t, std::string> sessions_;
  std::vector<std::string> without_session_;
};

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

std::vector<Slab> SlabsOf(const LeaseRecord& record, const Adoption& adoption) {
  std::vector<Slab> slabs;
  for (const SlabRecord& slab : record.slabs)
    slabs.push_back(adoption.slabs.at(slab.id));
  return slabs;
}

}  // namespace

absl::Status Machine::AdoptSession(const AdoptedSession& adopted,
                                   const HeadRecord& head, Turn& turn) {
  const SessionRecord& record = adopted.record;
  const Tenant* tenant = state_.tenants->Find(record.tenant);
  if (tenant == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("its tenant is no more: tenant=", record.tenant));
  }
  if (adopted.gate == nullptr)
    return absl::DataLossError("the page of its gate was not kept");
  Session* session = sessions_.Adopt(adopted, tenant->id, head.generation,
                                     state_.engine->last_lease(), turn);
  if (session == nullptr)
    return absl::DataLossError("its id, or its token, is another session's");
  gates_.Adopt(session, record);
  return absl::OkStatus();
}

void Machine::AdoptLease(const LeaseRecord& record, std::vector<Slab> slabs,
                         Turn& turn) {
  Lease* lease = leases_.Adopt(record, state_.tenants->Find(record.tenant)->id,
                               quota_.NextRequest(), std::move(slabs), turn);
  pools_.Adopt(*lease);
  mover_.Adopt(lease, turn);
  sharing_.Adopt(lease, turn);
  for (const MappingRecord& mapping : record.mappings) {
    SessionDesk::ExpectAgain(&state_.SessionAt(mapping.session),
                             mapping.request, lease->id);
  }
}

std::vector<NotAdopted> Machine::Adopt(const Adoption& adoption, Turn& turn) {
  HeadRecord head = adoption.head;
  ++head.generation;
  Recorder(state_).SetHead(head);
  sessions_.SkipIdsTo(head.session_ids_until);
  quota_.Adopt({}, head.lease_ids_until, turn);
  std::vector<NotAdopted> not_adopted;
  for (const PoolRecord& record : adoption.pools) {
    Pool* pool = state_.FindPool(record.device);
    if (pool != nullptr && !record.device.empty() && record.draining)
      pools_.SetDraining(pool, true, turn);
  }
  for (const AdoptedSession& session : adoption.sessions) {
    const absl::Status done = AdoptSession(session, head, turn);
    if (!done.ok())
      not_adopted.push_back({session.record.id, std::string(done.message())});
  }
  // All of it is written down anew, or as ended.
  Recorder recorder(state_);
  for (const AdoptedSession& session : adoption.sessions)
    recorder.TouchSession(session.record.id);
  for (const LeaseRecord& lease : adoption.leases)
    recorder.Touch(quota::LeaseId{lease.id});
  Lost lost;
  std::vector<LeaseRecord> taken;
  std::vector<quota::AdoptedLease> charges;
  std::set<SlabId> slabs_taken;
  for (LeaseRecord record : adoption.leases) {
    if (!KeepWhatLives(state_, &record)) continue;  // its session has ended
    absl::Status sound = CheckRecord(state_, record, adoption, &slabs_taken);
    if (sound.ok() &&
        !host_.Adopt(state_.tenants->Find(record.tenant)->id, record)) {
      sound = absl::ResourceExhaustedError(
          "the host pool has no room for it: is it smaller than it was?");
    }
    if (!sound.ok()) {
      lost.Add(record, sound);
      continue;
    }
    charges.push_back(ChargeOf(state_, record));
    taken.push_back(std::move(record));
  }
  quota_.Adopt(charges, head.lease_ids_until, turn);
  for (const LeaseRecord& record : taken)
    AdoptLease(record, SlabsOf(record, adoption), turn);
  for (const LeaseRecord& record : taken)
    mover_.GoOnWith(&state_.LeaseAt(quota::LeaseId{record.id}), record.place,
                    turn);
  for (const auto& [session, why] : lost.sessions()) {
    CloseSession(session, why, turn);
    not_adopted.push_back({session, why});
  }
  for (const std::string& why : lost.without_session())
    not_adopted.push_back({0, why});
  return not_adopted;
}

}  // namespace gmb::broker
