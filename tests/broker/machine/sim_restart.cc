// The broker of the simulated world dies, and another one takes over: what it
// had in its memory is gone; devices, clients and records are what they were.
#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "broker/machine/adoption.h"
#include "broker/machine/record_of.h"
#include "tests/broker/machine/sim_world.h"

namespace gmb::broker {
namespace {

std::string NameOf(const LeaseRecord& lease) {
  return absl::StrCat("lease ", lease.id, " of session ", lease.session,
                      " place ", static_cast<int>(lease.place));
}

}  // namespace

// The records are those that a look at all of the state would record.
void SimWorld::CheckRecords() {
  if (!problem_.empty() || !state().options.recorded || setting_up_) return;
  const Records records = book_.All();
  size_t sessions = 0;
  for (const auto& [id, session] : *state().sessions) {
    if (!IsRecorded(*session)) continue;
    const bool same =
        sessions < records.sessions.size() &&
        records.sessions[sessions++] == RecordOf(state(), *session);
    Expect(same, absl::StrCat("a session is recorded otherwise: ", id));
  }
  Expect(sessions == records.sessions.size(),
         "a session is recorded that has ended");
  size_t leases = 0;
  for (const auto& [id, lease] : *state().leases) {
    if (!IsRecorded(*lease)) continue;
    const LeaseRecord record = RecordOf(state(), *lease);
    const bool same =
        leases < records.leases.size() && records.leases[leases++] == record;
    Expect(same,
           absl::StrCat("a lease is recorded otherwise: ", NameOf(record)));
  }
  Expect(leases == records.leases.size(), "a lease is recorded that has ended");
  std::map<std::string, PoolRecord> pools;
  for (const PoolRecord& pool : records.pools) pools[pool.device] = pool;
  for (const auto& [id, pool] : *state().pools) {
    Expect(pools[pool->uuid()] == RecordOf(state(), *pool),
           absl::StrCat("a pool is recorded otherwise: ", pool->uuid()));
  }
  Expect(state().engine->last_lease() < records.head.lease_ids_until &&
             state().sessions->next_id() <= records.head.session_ids_until,
         "an id was given out that a successor would give out again");
}

// Their calls have failed; whether they are told or not is one to the machine.
void SimWorld::AnswerOperators(std::vector<Effect> effects) {
  for (Effect& effect : effects) {
    if (auto* reply = std::get_if<Reply>(&effect)) Put(*reply);
  }
}

std::map<SlabId, Slab> SimWorld::DestroyWhatNobodyNamed(
    const Records& records) {
  std::map<SlabId, Slab> named;
  for (const LeaseRecord& lease : records.leases) {
    for (const SlabRecord& slab : lease.slabs) {
      const auto made = made_.find(slab.id);
      if (made != made_.end() && keeper_.Get(slab.id) != nullptr)
        named.emplace(slab.id, made->second.second);
    }
  }
  for (const SlabId id : keeper_.List()) {
    if (named.contains(id)) continue;
    const auto& [pool, slab] = made_.at(id);
    (void)devices_.at(pool).tasks->Do(
        DestroyJob{{Condemned{slab, std::nullopt}}});
  }
  return named;
}

// Sets up what is in the database and the configuration.
void SimWorld::SetUpAgain(const State& before) {
  for (const auto& [id, old] : *before.pools) {
    const DeviceTasks& tasks = *devices_.at(id).tasks;
    const NewPool pool{.info = tasks.info(),
                       .baseline_bytes = tasks.baseline_bytes(),
                       .has_copier = old->has_copier,
                       .target_bytes = before.engine->Pool(id)->target_bytes,
                       .wanted = old->device->wanted,
                       .share_of_bytes = old->device->share_of_bytes,
                       .slabs = old->slabs->options()};
    Do("add pool again", [&](Turn& turn) {
      Expect(machine_->operators().AddPool(pool, turn).ok(),
             "the pool was not added");
    });
  }
  for (const auto& tenant : *before.tenants) {
    const TenantPolicy& policy = tenant.second.policy;
    Do("set tenant again", policy.name, [&](Turn& turn) {
      const auto set = machine_->operators().SetTenant(policy, turn);
      Expect(set.ok(), absl::StrCat("a tenant that was there is refused: ",
                                    set.status().message()));
    });
  }
}

void SimWorld::Adopt(const Records& records,
                     const std::map<SlabId, Slab>& slabs) {
  Adoption adoption;
  adoption.head = records.head;
  adoption.pools = records.pools;
  adoption.leases = records.leases;
  for (const SessionRecord& session : records.sessions) {
    const SimClient* client = Find(session.id);
    adoption.sessions.push_back(
        {.record = session,
         .pidfd = client == nullptr ? nullptr : client->process,
         .gate = client == nullptr ? std::make_shared<ipc::GateCells>()
                                   : client->cells});
  }
  for (const auto& [id, slab] : slabs) adoption.slabs.emplace(id, slab);
  if (spoil_ != nullptr) spoil_(&adoption);
  book_.DropAll();
  Do("adopt", [&](Turn& turn) {
    not_adopted = machine_->Adopt(adoption, turn);
    for (const NotAdopted& lost : not_adopted) {
      Expect(spoil_ != nullptr, absl::StrCat("a session was not adopted: ",
                                             lost.session, ": ", lost.why));
    }
  });
  adopted += records.leases.size();
  for (const NotAdopted& lost : not_adopted)
    Note(absl::StrCat("not adopted: ", lost.session, " ", lost.why));
  // Their processes have ended meanwhile.
  for (const SessionRecord& session : records.sessions) {
    if (Find(session.id) != nullptr) continue;
    Do("close", absl::StrCat(session.id), [&](Turn& turn) {
      machine_->CloseSession(session.id, "its process ended", turn);
    });
  }
}

void SimWorld::ReopenStreams() {
  // Those who were hung up on have nothing any more.
  for (const NotAdopted& lost : not_adopted) {
    const auto client = clients_.extract(lost.session);
    if (client.empty()) continue;
    for (const auto& [id, lease] : client.mapped()->leases) {
      if (lease.mapped) HoldSlabs(lease, false);
    }
    hung_up[lost.session] = absl::UnavailableError(lost.why);
  }
  for (SimClient* client : clients()) {
    const uint64_t session = client->session;
    Do("stream", absl::StrCat(session),
       [&](Turn& turn) { machine_->sessions().OnStream(session, turn); });
    const std::map<uint64_t, v1::ClientMessage> asked = client->asked;
    for (const auto& request : asked) {
      const v1::ClientMessage& message = request.second;
      Do("asked again",
         absl::StrCat("session ", session, " request ", request.first),
         [&](Turn& turn) { machine_->HandleMessage(session, message, turn); });
    }
  }
}

void SimWorld::Restart() {
  if (!problem_.empty()) return;
  const Fate fate = last_fate_;
  restarting_ = true;
  ++restarts;
  Note("the broker dies");
  const std::unique_ptr<Machine> before = std::move(machine_);
  {
    Turn last(now_, absl::FromUnixNanos(now_.ns));
    before->operators().RefuseWaiting(last);
    before->Settle(last);
    AnswerOperators(last.TakeEffects());
  }
  const Records records = book_.All();
  copies_.clear();
  cancelled_.clear();
  killed_.clear();
  refused_.clear();
  for (auto& [pool, device] : devices_) device.jobs.clear();
  // A client that greeted, and was not written down, is hung up on.
  for (SimClient* client : clients()) {
    const bool known =
        std::any_of(records.sessions.begin(), records.sessions.end(),
                    [&](const SessionRecord& session) {
                      return session.id == client->session;
                    });
    if (known) continue;
    for (const auto& [id, lease] : client->leases) {
      if (lease.mapped) HoldSlabs(lease, false);
    }
    clients_.erase(client->session);
  }
  const std::map<SlabId, Slab> slabs = DestroyWhatNobodyNamed(records);
  machine_ =
      std::make_unique<Machine>(before->state().options, host_pool_bytes_);
  setting_up_ = true;
  SetUpAgain(before->state());
  setting_up_ = false;
  Adopt(records, slabs);
  ReopenStreams();
  restarting_ = false;
  last_fate_ = fate;
}

}  // namespace gmb::broker
