// A tenant that owes an answer has no soft credit until it has given it.
#include "broker/machine/debt_desk.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "broker/machine/fact.h"
#include "broker/machine/lease_users.h"

namespace gmb::broker {

void DebtDesk::Add(const Lease& lease, const Session& session) {
  state_.owed.Edit({}).Add(lease.id, session);
}

// Only what has changed is looked at: whoever never answers costs nothing.
void DebtDesk::ForgetPaid(Turn& turn) {
  for (const quota::LeaseId id : index_.TakeLate()) {
    const auto lease = state_.leases->find(id);
    for (const OwedAnswers::Key& key : state_.owed->KeysOf(id)) {
      const Mapping* mapping = lease == state_.leases->end()
                                   ? nullptr
                                   : lease->second->MappingOf(key.session);
      if (mapping != nullptr && mapping->asked && mapping->overdue) continue;
      ForgetOne(key, turn);
    }
  }
}

// A process that has died by itself a moment before counts as killed. One that
// lives on keeps the memory that it does not give, which is hard from then on.
void DebtDesk::OnKilled(const Kill& kill, const absl::Status& status,
                        Turn& turn) {
  if (status.ok() || absl::IsUnavailable(status))
    return turn.Publish(kill.event);
  Session* session = state_.sessions->Find(kill.session);
  if (session == nullptr || session->talk->ended) return;
  sessions_.OnNotKilled(session, status, turn);
  std::vector<quota::LeaseId> leases(session->leases->begin(),
                                     session->leases->end());
  for (const quota::LeaseId id : SharedOf(state_, *session->tenant))
    leases.push_back(id);
  for (const quota::LeaseId id : leases) {
    const Mapping* mapping = state_.LeaseAt(id).MappingOf(session->id);
    if (mapping != nullptr && (mapping->overdue || mapping->refuses()))
      quota_.Tell(quota::HardChanged{id, true}, turn);
  }
}

void DebtDesk::ForgetOne(const OwedAnswers::Key& key, Turn& turn) {
  const quota::TenantId tenant = state_.owed.Edit({}).Remove(key);
  // Others of its process and of its tenant may be asked again.
  index_.MarkChangedEverywhere(tenant);
  if (state_.owed->OfTenant(tenant) == 0) SoftenAll(tenant, turn);
}

// The tenant owes no answer any more: what was hard for that is soft again.
void DebtDesk::SoftenAll(quota::TenantId tenant_id, Turn& turn) {
  if (state_.tenants->Find(tenant_id) == nullptr) return;
  std::set<quota::LeaseId> hard;
  const auto add = [&](quota::LeaseId id) {
    if (state_.engine->Lease(id)->hard) hard.insert(id);
  };
  LendsAgain lend;
  for (const uint64_t id : state_.sessions->OfTenant(tenant_id)) {
    const Session& session = state_.SessionAt(id);
    for (const quota::LeaseId lease : *session.leases) add(lease);
    if (!session.talk->pending.empty()) lend.sessions.push_back(id);
  }
  for (const quota::LeaseId id : SharedOf(state_, tenant_id)) add(id);
  for (const quota::LeaseId id : hard) {
    const Lease& lease = state_.LeaseAt(id);
    const std::vector<Mapping>& mappings = lease.move->mappings;
    if (std::none_of(mappings.begin(), mappings.end(),
                     [](const Mapping& m) { return m.refuses(); })) {
      host_.Soften(lease, turn);
    }
  }
  if (!lend.sessions.empty()) turn.Queue(std::move(lend));
}

}  // namespace gmb::broker
