#include "tests/broker/machine/machine_invariants.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/reclaim_rows.h"
#include "tests/broker/machine/machine_promises.h"

namespace gmb::broker {
namespace {

class Checker {
 public:
  Checker(const State& state, quota::Instant now) : state_(state), now_(now) {}

  std::string Run() {
    for (const auto& [id, pool] : *state_.pools) {
      CheckPool(*pool);
      CheckPaced(*pool);
      CheckCopiesIn(*pool);
    }
    CheckSlabs();
    for (const auto& [id, lease] : *state_.leases) CheckLease(*lease);
    for (const auto& [id, session] : *state_.sessions) CheckSession(*session);
    CheckLists();
    CheckStanding();
    CheckHostBooks();
    CheckOwed();
    return problem_;
  }

 private:
  void Expect(bool holds, const std::string& what) {
    if (!holds && problem_.empty()) problem_ = what;
  }

  void CheckPool(const Pool& pool) {
    const Composition p = pool.slabs->composition();
    const uint64_t sum = p.granted_bytes + p.returned_bytes + p.ready_bytes +
                         p.float_bytes + p.scrubbing_bytes +
                         p.unreturned_bytes + p.missing_bytes;
    Expect(sum == p.capacity_bytes,
           absl::StrCat("the parts of a pool are ", sum, " of ",
                        p.capacity_bytes));
    const quota::PoolView view = *state_.engine->Pool(pool.id);
    Expect(p.capacity_bytes >= view.capacity_bytes,
           "the pool shows less than its capacity");
    uint64_t resident = 0;
    for (const auto& [id, lease] : *state_.leases) {
      const bool here = lease->move->residence != Residence::kEvicted;
      if (lease->request.pool == pool.id && here) resident += lease->bytes;
    }
    Expect(resident == p.granted_bytes,
           absl::StrCat("leases on the device are ", resident,
                        " bytes, the slabs' books say ", p.granted_bytes));
    Expect(view.leased_bytes >= resident, "more is resident than is leased");
    const bool whole =
        pool.device->missing_bytes + pool.device->orphaned_bytes == 0 &&
        pool.device->unreturned.empty();
    if (whole) {
      const std::string broken = WhichPromiseIsBroken(state_, pool);
      Expect(broken.empty(), broken);
    }
    if (ShortageIn(state_, pool.id, true).has_value()) {
      Expect(pool.plan->replan_at != quota::Instant::Max(),
             "a request lacks bytes, and nothing is planned for it");
    }
  }

  // A create that is held goes on when something that is under way is over.
  void CheckPaced(const Pool& pool) {
    const PacedCreates& paced = pool.device->paced;
    uint64_t bytes = 0;
    size_t leases = 0;
    for (const auto& [id, lease] : *state_.leases) {
      if (lease->request.pool != pool.id || !lease->held->filling) continue;
      bytes += lease->bytes;
      ++leases;
      Expect(lease->held->preparing || lease->copy->copies > 0,
             absl::StrCat("lease ", id.value, " is said to be filled"));
    }
    Expect(bytes == paced.filling_bytes() && leases == paced.filling_leases(),
           "what is being filled is miscounted");
    Expect(!paced.holds_any() || !paced.IsDue(state_.options.fill_ahead_bytes),
           "creates are held that are due");
  }

  // Refills go on when the last one is full.
  void CheckCopiesIn(const Pool& pool) {
    uint32_t leases = 0;
    for (const auto& [id, lease] : *state_.leases) {
      if (lease->request.pool != pool.id || !lease->copy->copying_in) continue;
      ++leases;
      Expect(lease->copy->copies > 0,
             absl::StrCat("lease ", id.value, " is said to be copied in"));
    }
    Expect(leases == pool.copies_in->leases,
           "what is being copied in is miscounted");
  }

  void CheckSlabs() {
    std::map<SlabId, quota::LeaseId> owners;
    for (const auto& [id, lease] : *state_.leases) {
      for (const Slab& slab : lease->held->slabs) {
        Expect(owners.emplace(slab.id, id).second,
               absl::StrCat("slab ", slab.id, " belongs to two leases"));
      }
    }
  }

  void CheckLease(const Lease& lease) {
    const std::string name = absl::StrCat("lease ", lease.id.value, ": ");
    const auto view = state_.engine->Lease(lease.id);
    Expect(view.has_value(), name + "the engine does not know it");
    if (!view.has_value()) return;
    const bool away = lease.move->residence == Residence::kEvicted;
    Expect(view->evicted == away, name + "here and in the engine it differs");
    Expect(view->bytes == lease.bytes, name + "its size differs");
    Expect(state_.reclaim->IsTrueOf(state_, lease),
           name + "what reclaim knows of it is not so");
    uint64_t bytes = 0;
    for (const Slab& slab : lease.held->slabs) bytes += slab.bytes;
    Expect(!away || lease.held->slabs.empty(),
           name + "it is away and has slabs");
    Expect(away || lease.held->preparing || bytes == lease.bytes,
           name + "its slabs are not its size");
    if (lease.life->doomed) {
      Expect(lease.held->preparing || lease.copy->copies > 0,
             name + "it ended, and stays");
      return;
    }
    const bool moves = lease.move->residence == Residence::kEvicting ||
                       lease.move->residence == Residence::kRestoring;
    if (moves || lease.asked())
      Expect(state_.moving->contains({lease.tenant, lease.id}),
             name + "it moves, unlisted");
    const bool kept = lease.request.contents == v1::PRESERVE;
    if (kept && away && lease.life->state != v1::LeaseInfo::CREATING) {
      Expect(state_.host_books->TrueCopy(lease.id) != nullptr,
             name + "it is away, and its contents are nowhere");
    }
    if (kept && lease.move->torn) {
      Expect(state_.host_books->TrueCopy(lease.id) != nullptr,
             name + "it is torn, and its contents are nowhere");
    }
    Expect(lease.sharing->shared || lease.move->mappings.size() == 1,
           name + "it has not one user");
    for (const Mapping& mapping : lease.move->mappings) {
      const Session* session = state_.sessions->Find(mapping.session);
      Expect(session != nullptr && session->leases->contains(lease.id),
             name + "a user does not have it");
    }
    if (*lease.awaits_pause) {
      bool paused = false;
      for (const auto& [id, session] : *state_.sessions)
        paused |= state_.pausing->contains(id);
      Expect(paused, name + "it awaits a pause, and nobody is paused");
    }
  }

  void CheckSession(const Session& session) {
    const std::string name = absl::StrCat("session ", session.id, ": ");
    uint64_t leased_bytes = 0;
    for (const quota::LeaseId id : *session.leases) {
      const auto lease = state_.leases->find(id);
      Expect(lease != state_.leases->end(), name + "it has a lease that ended");
      if (lease == state_.leases->end()) continue;
      Expect(lease->second->MappingOf(session.id) != nullptr,
             name + "a lease of its does not know it");
      leased_bytes += lease->second->bytes;
    }
    Expect(*session.leased_bytes == leased_bytes,
           name + "its bytes are not those of its leases");
    Expect(
        session.waking->restores.empty() || state_.waking->contains(session.id),
        name + "its Restores are not listed");
    if (session.waking->restoring.has_value()) {
      Expect(state_.restoring->contains(*session.waking->restoring),
             name + "its Restore is not listed");
      Expect(state_.engine->IsWaiting(*session.waking->restoring),
             name + "its Restore is answered, and it waits");
    }
    for (const auto& [client_id, unanswered] : session.talk->pending) {
      const quota::RequestId request = unanswered.request;
      const auto pending = state_.pending->find(request);
      if (pending == state_.pending->end()) {
        const auto made = state_.leases->find(unanswered.being_made);
        Expect(session.talk->ended || (made != state_.leases->end() &&
                                       made->second->request.id == request),
               name + "its Acquire does not wait, and no lease is being made");
        continue;
      }
      Expect(state_.engine->IsWaiting(request) !=
                 pending->second.ask_again_at.has_value(),
             name + "its Acquire is answered, and it waits");
    }
    if (session.gate != nullptr && session.gate->pausing_until().has_value())
      Expect(state_.pausing->contains(session.id),
             name + "its pause is unlisted");
  }

  void CheckLists() {
    for (const auto& [tenant, id] : *state_.moving)
      Expect(state_.leases->contains(id), "a lease moves that has ended");
    for (const auto& [tenant, id] : *state_.shared_leases)
      Expect(state_.leases->contains(id),
             "a shared lease is listed, and ended");
    for (const auto& [id, lease] : *state_.leases) {
      Expect(!*lease->put_off || IsPutOff(id),
             "a lease is put off, and nothing brings it back");
      if (!lease->asked_back->has_value()) continue;
      const auto its = state_.asked_back->By(**lease->asked_back);
      Expect(std::find(its.begin(), its.end(), id) != its.end(),
             "a lease is asked back by a request that does not list it");
    }
    for (const auto& ids : {*state_.pausing, *state_.waking}) {
      for (const uint64_t id : ids)
        Expect(state_.sessions->Find(id) != nullptr,
               "an ended session is listed");
    }
    for (const auto& [request, returning] : *state_.restoring) {
      Expect(state_.engine->IsWaiting(request),
             "a Restore is listed that is answered");
    }
    for (const auto& [request, pending] : *state_.pending) {
      Expect(state_.sessions->Find(pending.session) != nullptr,
             "an ended session's Acquire is listed");
    }
    CheckPutOffs();
    Expect(state_.engine->leases() == state_.leases->size(),
           "the engine has other leases than the machine");
  }

  [[nodiscard]] bool Stands(quota::Cause cause, quota::PoolId pool,
                            quota::TenantId tenant = {}) const {
    return std::any_of(state_.standing->begin(), state_.standing->end(),
                       [&](const StandingDemand& demand) {
                         return demand.cause == cause && demand.pool == pool &&
                                demand.tenant == tenant;
                       });
  }

  // A setting that has not taken effect has its demand.
  void CheckStanding() {
    if (*state_.stopping) return;
    for (const auto& [id, pool] : *state_.pools) {
      const quota::PoolView view = *state_.engine->Pool(id);
      Expect(!pool->device->draining || Stands(quota::Cause::kPoolDrain, id),
             "a pool drains, and nobody empties it");
      Expect(view.capacity_bytes <= view.target_bytes ||
                 Stands(quota::Cause::kPoolShrink, id),
             "a pool is to shrink, and nobody makes it smaller");
      for (const auto& [tenant, unused] : *state_.tenants) {
        const auto holding = state_.engine->HoldingOf(tenant, id);
        Expect(!holding.has_value() || holding->over_limit_bytes == 0 ||
                   Stands(quota::Cause::kOverLimit, id, tenant),
               "a tenant is above its limit, and nobody enforces it");
      }
    }
  }

  void CheckPutOffs() {
    std::map<std::pair<quota::TenantId, quota::PoolId>, PutOffs::Sum> sums;
    std::map<quota::PoolId, PutOffs::Sum> of_pool;
    size_t put_off = 0;
    for (const auto& [id, pending] : *state_.pending) {
      if (!pending.ask_again_at.has_value()) continue;
      ++put_off;
      Expect(state_.put_off->Has(pending),
             "an Acquire is put off, and nothing brings it back");
      const auto tenant = *state_.SessionAt(pending.session).tenant;
      for (PutOffs::Sum* sum :
           {&sums[{tenant, pending.pool}], &of_pool[pending.pool]}) {
        ++sum->requests;
        sum->bytes += pending.bytes;
      }
    }
    Expect(put_off == state_.put_off->size(),
           "an Acquire is listed as put off that is not");
    const auto same = [](const PutOffs::Sum& a, const PutOffs::Sum& b) {
      return a.requests == b.requests && a.bytes == b.bytes;
    };
    for (const auto& [pool, unused] : *state_.pools) {
      Expect(same(of_pool[pool], state_.put_off->SumOf(pool)),
             "what is put off is counted wrongly of a pool");
      for (const auto& [tenant, listed] : sums) {
        if (tenant.second != pool) continue;
        Expect(same(listed, state_.put_off->SumOf(tenant.first, pool)) &&
                   state_.put_off->Of(tenant.first, pool, {}, put_off).size() ==
                       listed.requests,
               "what is put off is counted wrongly of a tenant");
      }
    }
  }

  [[nodiscard]] bool IsPutOff(quota::LeaseId lease) const {
    return std::any_of(state_.restores_put_off->begin(),
                       state_.restores_put_off->end(),
                       [&](const auto& put) { return put.second == lease; });
  }

  // The books of answers that are owed, against the leases.
  void CheckOwed() {
    std::set<OwedAnswers::Key> owed;
    std::map<quota::TenantId, uint32_t> of_tenant;
    for (const auto& [id, lease] : *state_.leases) {
      for (const Mapping& mapping : lease->move->mappings) {
        if (!mapping.asked || !mapping.overdue) continue;
        owed.insert({id, mapping.session});
        ++of_tenant[lease->tenant];
      }
    }
    const std::vector<OwedAnswers::Key> keys = state_.owed->Keys();
    Expect(std::set<OwedAnswers::Key>(keys.begin(), keys.end()) == owed,
           "the books of overdue answers are wrong");
    for (const auto& [id, tenant] : *state_.tenants) {
      Expect(state_.owed->OfTenant(id) == of_tenant[id],
             "a tenant's overdue answers are miscounted");
    }
  }

  void CheckHostBooks() {
    uint64_t reserved = 0;
    for (const auto& [id, lease] : *state_.leases)
      reserved += state_.host_books->HasRoom(id) ? lease->bytes : 0;
    Expect(reserved == state_.host_books->total().reserved_bytes,
           absl::StrCat("leases have room for ", reserved,
                        ", the host pool's books say ",
                        state_.host_books->total().reserved_bytes));
  }

  const State& state_;
  const quota::Instant now_;
  std::string problem_;
};

}  // namespace

std::string WhatIsWrong(const State& state, quota::Instant now) {
  return Checker(state, now).Run();
}

std::string WhatIsLeft(const State& state) {
  if (!state.leases->empty()) {
    return absl::StrCat(state.leases->size(), " leases are left, first ",
                        state.leases->begin()->first.value);
  }
  if (state.engine->leases() > 0) return "the engine has leases left";
  if (state.engine->waiting() > 0) return "the engine has requests left";
  if (state.engine->handles() > 0) return "handles are left in use";
  if (!state.moving->empty() || !state.pausing->empty() ||
      !state.waking->empty() || !state.restoring->empty() ||
      !state.pending->empty() || !state.shared_leases->empty()) {
    return "a list of what is under way is not empty";
  }
  if (state.host_books->total().reserved_bytes > 0)
    return "room in the host pool is left reserved";
  for (const auto& [id, tenant] : *state.tenants) {
    if (!state.shared_names->OfTenant(id).empty())
      return "a name of a shared lease is left";
  }
  for (const auto& [id, pool] : *state.pools) {
    const Composition p = pool->slabs->composition();
    if (p.granted_bytes > 0) return "granted bytes are left";
    if (pool->device->jobs > 0) return "a device still has jobs";
  }
  return "";
}

void MachineProbe::AskAgain(Machine* machine, Turn& turn) {
  const State& state = machine->state();
  const std::vector<uint64_t> waking(state.waking->begin(),
                                     state.waking->end());
  for (const uint64_t id : waking) {
    if (Session* session = state.sessions->Find(id))
      machine->waker_.AdvanceRestore(session, turn);
  }
  const auto shared = *state.shared_leases;
  for (const auto& [tenant, id] : shared) {
    const auto lease = state.leases->find(id);
    if (lease != state.leases->end())
      machine->sharing_.ServeAttaches(lease->second.get(), turn);
  }
  machine->Drain(turn);
  // The next turns look at the others.
  if (state.room_look->under_way() ||
      state.room_look->IsNews(state.host_books->gains())) {
    return;
  }
  LendsAgain all;
  for (const auto& [id, session] : *state.sessions) all.sessions.push_back(id);
  machine->requests_.OnLendsAgain(all, turn);
  machine->Drain(turn);
  // They are too many for one turn. (Time is nothing to the engine unless it is
  // told something, and that would be something that follows.)
  while (state.room_look->under_way()) {
    Turn later(std::max(turn.now(), state.room_look->not_before()),
               turn.wall());
    machine->requests_.SoftenSome(later);
    machine->Drain(later);
    for (Effect& effect : later.TakeEffects()) turn.Add(std::move(effect));
  }
}

std::string MachineProbe::AskOnceMore(Machine* machine, uint64_t session,
                                      v1::ClientMessage message, Turn& turn) {
  message.set_request_id(UINT64_MAX);
  if (message.has_acquire()) message.mutable_acquire()->clear_wait();
  if (message.has_attach()) message.mutable_attach()->clear_wait();
  if (message.has_restore()) message.mutable_restore()->clear_wait();
  machine->HandleMessage(session, message, turn);
  machine->Drain(turn);
  // The rest of what it needs may begin, refused or not: a lease of its that
  // lies there is mapped.
  std::string differs;
  for (const Effect& effect : turn.TakeEffects()) {
    const auto* say = std::get_if<Say>(&effect);
    if (say != nullptr && say->message.has_error() &&
        say->message.request_id() == UINT64_MAX) {
      return "";
    }
    if (say != nullptr)
      differs = "is answered: " + say->message.ShortDebugString();
    else if (!std::holds_alternative<Publish>(effect))
      differs = absl::StrCat("has effect ", effect.index());
  }
  return differs;
}

}  // namespace gmb::broker
