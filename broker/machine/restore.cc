// Leases that come back to the device, all of a session's or none.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/machine.h"
#include "broker/machine/refusals.h"
#include "broker/machine/turn.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr uint32_t kMaxAttempts = 3;
// While nobody outside takes what is freed.
constexpr uint32_t kMostAttempts = 256;
// Of those whose time is over, in one turn: the next goes on.
constexpr int kMostAtOnce = 64;

}  // namespace

void Machine::Restore(Session* session, uint64_t client_id,
                      const v1::Restore& restore, Turn& turn) {
  if (session->gate == nullptr) {
    return Refuse(session, client_id,
                  proto::MakeError(v1::BAD_STATE, "this session has no gate"),
                  turn);
  }
  if (session->restores.size() >= state_.options.max_requests_per_session) {
    return Refuse(session, client_id,
                  TooManyRequests(state_.options.max_requests_per_session),
                  turn);
  }
  const quota::Instant until = turn.now() + SaneWait(restore.wait());
  session->restores.emplace(client_id, until);
  state_.restore_times.emplace(until, session->id, client_id);
  state_.waking.insert(session->id);
  AdvanceRestore(session, turn);
}

// The next step towards gates that are open, if there is one: everything that
// ends a step of a session's leases comes here.
void Machine::AdvanceRestore(Session* session, Turn& turn) {
  if (session->gate == nullptr) return;
  const std::vector<Session*> members = state_.groups.Members(session);
  const auto any = [&](auto holds) {
    return std::any_of(members.begin(), members.end(), holds);
  };
  if (any([](const Session* m) { return m->restoring.has_value(); })) return;
  if (!any([](const Session* m) { return m->gate->closed(); })) {
    if (!any([](const Session* m) {
          return m->gate->pausing_until().has_value();
        })) {
      AnswerMembers(session, absl::OkStatus(), turn);
    }
    return;
  }
  Away away = AwayOf(members);
  if (away.moving) return;
  if (away.evicted.empty() && away.unready.empty() && !away.asked_back) {
    for (Session* member : members) Reopen(member, turn);
    return;
  }
  if (!any([](const Session* m) { return !m->restores.empty(); })) return;
  // What could not even begin is answered to all of them.
  bool began = true;
  for (const auto& [lease, user] : away.unready)
    began &= MakeReady(lease, user, turn);
  if (began && !away.evicted.empty())
    AskForRestore(members, std::move(away.evicted), turn);
}

Machine::Away Machine::AwayOf(const std::vector<Session*>& members) const {
  Away away;
  for (Session* member : members) {
    for (const quota::LeaseId id : member->leases) {
      Lease* lease = &state_.LeaseAt(id);
      const Mapping& mapping = *lease->MappingOf(member->id);
      away.moving |= lease->residence == Residence::kEvicting ||
                     lease->residence == Residence::kRestoring ||
                     mapping.asked ||
                     // Others are paused so that it can be taken.
                     (lease->awaits_pause && mapping.unmapped);
      if (lease->residence == Residence::kEvicted) {
        if (IsAskedBack(state_, *lease)) {
          away.asked_back = true;
        } else {
          away.evicted.push_back(id);
        }
      } else if (mapping.unmapped || lease->torn) {
        away.unready.emplace_back(lease, member);
      }
    }
  }
  return away;
}

// What an eviction that failed, or a restore, has left on the device; of a
// shared lease, what others have brought back.
// Whether that could begin.
bool Machine::MakeReady(Lease* lease, Session* session, Turn& turn) {
  if (lease->residence == Residence::kRestoring) return true;  // of the group
  if (!lease->shared || lease->torn) return Refill(lease, turn);
  state_.moving.insert(lease->id);
  StartMapping(lease, lease->MappingOf(session->id), turn);
  return true;
}

bool Machine::Refill(Lease* lease, Turn& turn) {
  lease->residence = Residence::kRestoring;
  lease->move_started = turn.now();
  lease->moved = absl::OkStatus();
  state_.moving.insert(lease->id);
  state_.reclaim.Touch(state_, *lease);
  if (lease->torn) {
    CopyContents(lease, device::CopyDirection::kIn, {0, lease->slabs.size()},
                 turn);
  }
  const bool began = lease->moved.ok();
  MapForUsers(lease, turn);
  TryEndRestore(lease, turn);
  return began;
}

// Of those who share it, the ones that want it; the others map it when they do.
void Machine::MapForUsers(Lease* lease, Turn& turn) {
  for (Mapping& mapping : lease->mappings) {
    const bool wanted =
        !lease->shared || WantsIn(state_, &state_.SessionAt(mapping.session));
    if (mapping.unmapped && wanted) StartMapping(lease, &mapping, turn);
  }
}

// In whose name the engine is asked: the member that waits the longest. It
// denies a session that is being paused at once, and one whose wait is over:
// while one is paused, such a one is not asked for. Null: nobody.
Session* Machine::AskerOf(const std::vector<Session*>& members,
                          quota::Instant now) const {
  Session* asking = nullptr;
  quota::Instant deadline;
  bool paused = false;
  for (Session* member : members) {
    if (state_.pausing.contains(member->id)) {
      paused = true;
      continue;
    }
    for (const auto& [id, until] : member->restores) {
      if (asking != nullptr && until <= deadline) continue;
      asking = member;
      deadline = until;
    }
  }
  return paused && asking != nullptr && deadline <= now ? nullptr : asking;
}

void Machine::AskForRestore(const std::vector<Session*>& members,
                            std::vector<quota::LeaseId> evicted, Turn& turn) {
  Session* const asking = AskerOf(members, turn.now());
  if (asking == nullptr) return;
  quota::Instant deadline;
  for (const auto& [id, until] : asking->restores)
    deadline = std::max(deadline, until);
  for (Session* member : members) ++member->restore_attempts;
  const quota::RequestId request{state_.next_request++};
  asking->restoring = request;
  state_.restoring.emplace(request, Returning{asking->id, std::nullopt});
  for (const quota::LeaseId id : evicted) {
    Lease* lease = &state_.LeaseAt(id);
    if (lease->shared) lease->asked_back = request;
  }
  Tell(quota::Restore{request, quota::SessionId{asking->id}, std::move(evicted),
                      deadline},
       turn);
}

void Machine::Reopen(Session* session, Turn& turn) {
  if (!session->gate->Reopen()) {
    return AnswerRestores(
        session,
        proto::MakeError(v1::BAD_STATE,
                         "the gate's word was written over while it was "
                         "closed: this process breaks the gate's rules"),
        turn);
  }
  AnswerRestores(session, absl::OkStatus(), turn);
}

void Machine::AnswerRestores(Session* session, const absl::Status& status,
                             Turn& turn) {
  std::map<uint64_t, quota::Instant> waiting;
  waiting.swap(session->restores);
  session->restore_attempts = 0;
  state_.waking.erase(session->id);
  for (const auto& [client_id, until] : waiting)
    state_.restore_times.erase({until, session->id, client_id});
  for (const auto& [client_id, until] : waiting) {
    if (!status.ok()) {
      Refuse(session, client_id, status, turn);
      continue;
    }
    v1::BrokerMessage answer;
    answer.set_request_id(client_id);
    answer.mutable_restored();
    Answer(session, std::move(answer), turn);
  }
}

void Machine::AnswerMembers(Session* session, const absl::Status& status,
                            Turn& turn) {
  for (Session* member : state_.groups.Members(session))
    AnswerRestores(member, status, turn);
}

void Machine::OnRestored(const quota::Restored& restored, Turn& turn) {
  auto it = state_.restoring.find(restored.request);
  if (it == state_.restoring.end()) return OnRestoredForNobody(turn);
  const Returning returning = it->second;
  state_.restoring.erase(it);
  if (returning.for_attach.has_value())
    return OnBackForAttach(*returning.for_attach, turn);
  Session* session = &state_.SessionAt(returning.session);
  session->restoring.reset();
  std::vector<Lease*> back;
  for (const quota::LeaseId id :
       AwayOf(state_.groups.Members(session)).evicted) {
    if (!state_.engine.Lease(id)->evicted) back.push_back(&state_.LeaseAt(id));
  }
  // What was asked for and has been left meanwhile: it is charged, so it comes.
  for (const quota::LeaseId id : state_.shared_leases) {
    Lease* lease = &state_.LeaseAt(id);
    if (lease->asked_back == restored.request &&
        !state_.engine.Lease(id)->evicted) {
      back.push_back(lease);
    }
  }
  for (Lease* lease : back) {
    // A group's members may share one.
    if (lease->residence == Residence::kEvicted) StartRestore(lease, turn);
  }
  // It may have left the only one that it waited for.
  AdvanceRestore(session, turn);
}

// Who asked has left, or withdrawn it, since the engine decided. The bytes are
// charged already: what was asked for comes back, for others or to be released.
void Machine::OnRestoredForNobody(Turn& turn) {
  std::vector<quota::LeaseId> charged;
  for (const auto& [id, lease] : state_.leases) {
    if (lease->residence == Residence::kEvicted &&
        !state_.engine.Lease(id)->evicted) {
      charged.push_back(id);
    }
  }
  std::sort(charged.begin(), charged.end());
  for (const quota::LeaseId id : charged)
    StartRestore(&state_.LeaseAt(id), turn);
}

// Denied: of the engine's request; each of the client's has its own deadline.
// Its own are answered before others ask for the same leases: a denial that is
// told at once would go round between them for ever.
void Machine::OnRestoreDenied(const quota::Denied& denied, Session* session,
                              Turn& turn) {
  session->restoring.reset();
  const bool in_time = denied.reason == quota::Reason::kPoolExhausted;
  const bool waits_on = denied.pausing || (in_time && WaitsOn(session, turn));
  if (!waits_on) {
    uint64_t bytes = 0;
    for (const quota::LeaseId id :
         AwayOf(state_.groups.Members(session)).evicted)
      bytes += state_.LeaseAt(id).bytes;
    v1::Event event = NewEvent("restore_failed", session->tenant);
    event.set_session_id(session->id);
    event.set_bytes(bytes);
    event.set_message(std::string(quota::ReasonName(denied.reason)));
    turn.Publish(std::move(event));
    AnswerMembers(session, DenialStatus(denied, bytes), turn);
  }
  AdvanceOthers(denied.request, session, turn);
  // What ends a pause comes back to it; so does its deadline.
  if (waits_on) AdvanceRestore(session, turn);
}

// Whether a Restore of the session, or of its group, has time left.
bool Machine::WaitsOn(Session* session, const Turn& turn) const {
  for (const Session* member : state_.groups.Members(session)) {
    for (const auto& [id, until] : member->restores) {
      if (until > turn.now()) return true;
    }
  }
  return false;
}

void Machine::StartRestore(Lease* lease, Turn& turn) {
  Pool* pool = &state_.PoolAt(lease->request.pool);
  lease->residence = Residence::kRestoring;
  lease->move_started = turn.now();
  lease->moved = absl::OkStatus();
  state_.moving.insert(lease->id);
  state_.reclaim.Touch(state_, *lease);
  PublishMove("restore_started", *lease, {}, "", turn);
  TakePlan plan = pool->slabs.Take(lease->tenant, lease->bytes);
  lease->slabs = std::move(plan.taken);
  if (plan.create_bytes.empty()) return FillAndMap(lease, turn);
  lease->preparing = true;
  Give(pool,
       PrepareJob{lease->id,
                  {std::move(plan.destroy), std::move(plan.create_bytes)}},
       turn);
}

// Its slabs are there: clients map them while they are being filled.
void Machine::FillAndMap(Lease* lease, Turn& turn) {
  if (lease->request.contents == v1::PRESERVE) {
    if (state_.host_books.TrueCopy(lease->id) == nullptr)
      return LoseContents(lease, turn);
    CopyContents(lease, device::CopyDirection::kIn, {0, lease->slabs.size()},
                 turn);
  }
  MapForUsers(lease, turn);
  TryEndRestore(lease, turn);
}

// There is nothing to fill it with: it stays evicted, and who asks is told.
void Machine::LoseContents(Lease* lease, Turn& turn) {
  GiveBack(&state_.PoolAt(lease->request.pool), *lease, {}, turn);
  lease->slabs.clear();
  lease->residence = Residence::kEvicted;
  state_.moving.erase(lease->id);
  state_.reclaim.Touch(state_, *lease);
  PublishMove("restore_failed", *lease, {}, "its contents are gone", turn);
  Tell(quota::Evicted{lease->id}, turn);
  turn.Queue(MoveFailed{
      lease->id,
      proto::MakeError(v1::CONTENTS_LOST,
                       absl::StrCat("a lease's contents are gone: release it "
                                    "and make them anew: lease=",
                                    lease->id.value))});
}

// Not all of its slabs could be created: it stays evicted.
void Machine::OnRestoreNotPrepared(Pool* pool, Lease* lease,
                                   const std::vector<uint64_t>& not_created,
                                   const absl::Status& status, Turn& turn) {
  for (const uint64_t bytes : not_created) pool->slabs.CreateFailed(bytes);
  GiveBack(pool, *lease, {}, turn);
  lease->slabs.clear();
  lease->residence = Residence::kEvicted;
  state_.moving.erase(lease->id);
  state_.reclaim.Touch(state_, *lease);
  PublishMove("restore_failed", *lease, {}, status.message(), turn);
  Tell(quota::Evicted{lease->id}, turn);
  // Whoever holds on to a slab for a moment costs a moment; who goes past the
  // broker takes whatever is freed.
  const bool passing =
      absl::IsResourceExhausted(status) && pool->missing_bytes == 0;
  if (RestoreAttempts(state_, *lease) >=
      (passing ? kMostAttempts : kMaxAttempts)) {
    turn.Queue(MoveFailed{
        lease->id,
        proto::MakeError(
            absl::IsResourceExhausted(status) ? v1::POOL_EXHAUSTED
                                              : v1::DEVICE_ERROR,
            absl::StrCat("the device could not make the slabs again; contents "
                         "are kept, try again: ",
                         status.message()),
            {.retry_after = absl::Milliseconds(500)})});
  }
  turn.Queue(LeaseSettled{lease->id});
}

void Machine::OnMapped(Session* session, const v1::Mapped& mapped, Turn& turn) {
  Lease* lease = FindLease(*session, mapped.lease_id());
  if (lease == nullptr || lease->residence == Residence::kEvicting) return;
  Mapping* mapping = lease->MappingOf(session->id);
  if (!mapping->asked || mapping->move != mapped.move()) return;
  mapping->asked = false;
  mapping->answer_by = quota::Instant::Max();
  mapping->unmapped = mapped.has_error();
  state_.reclaim.Touch(state_, *lease);
  absl::Status failed;
  if (mapped.has_error()) failed = proto::FromWireError(mapped.error());
  if (lease->shared) return OnSharedMapped(session, lease, failed, turn);
  lease->moved.Update(failed);
  TryEndRestore(lease, turn);
}

void Machine::TryEndRestore(Lease* lease, Turn& turn) {
  // Who shares it may leave at any time.
  if (lease->preparing) return;
  // A shared one is back once it is filled: who maps it does so on his own
  // account.
  const bool mapping = lease->asked();
  if (lease->copies > 0 || (mapping && !(lease->shared && lease->moved.ok())))
    return;
  const quota::Instant now = turn.now();
  if (!mapping && lease->ForgetOverdue()) Soften(lease, turn);
  state_.reclaim.Touch(state_, *lease);
  if (!lease->moved.ok()) return UndoRestore(lease, turn);
  if (!mapping) state_.moving.erase(lease->id);
  lease->residence = Residence::kResident;
  lease->torn = false;
  lease->resident_since = now;
  lease->restore_time = now - lease->move_started;
  state_.reclaim.Touch(state_, *lease);
  if (!lease->shared) {
    lease->backed_epoch =
        state_.SessionAt(lease->request.session).gate->epoch();
  }
  PublishMove("restored", *lease, lease->restore_time, "", turn);
  turn.Queue(LeaseSettled{lease->id});
}

// What was asked for fails; its contents are where they are authoritative.
void Machine::UndoRestore(Lease* lease, Turn& turn) {
  const absl::Status why = std::exchange(lease->moved, absl::OkStatus());
  PublishMove("restore_failed", *lease, {}, why.message(), turn);
  const bool in_host_pool = lease->request.contents != v1::PRESERVE ||
                            state_.host_books.TrueCopy(lease->id) != nullptr;
  turn.Queue(MoveFailed{lease->id, NotBroughtBack(why)});
  if (in_host_pool) {
    lease->torn = lease->request.contents == v1::PRESERVE;
    return StartEviction(
        lease,
        turn.now() + quota::Nanoseconds(state_.options.planner.unmap_grace),
        lease->may_terminate, turn);
  }
  state_.moving.erase(lease->id);
  lease->residence = Residence::kResident;
  state_.reclaim.Touch(state_, *lease);
}

// Restores whose own deadline is over: their leases may still be on their way
// out, their pause may last, or another of the group waits longer.
void Machine::ExpireRestores(Turn& turn) {
  const quota::Instant now = turn.now();
  for (int i = 0; i < kMostAtOnce && !state_.restore_times.empty(); ++i) {
    const auto [until, id, client_id] = *state_.restore_times.begin();
    if (until > now) return;
    state_.restore_times.erase(state_.restore_times.begin());
    Session* session = &state_.SessionAt(id);
    session->restores.erase(client_id);
    Refuse(session, client_id,
           proto::MakeError(v1::POOL_EXHAUSTED,
                            "the session's memory was not back in time: wait "
                            "longer",
                            {.retry_after = absl::Milliseconds(100)}),
           turn);
    if (session->restores.empty()) state_.waking.erase(id);
  }
}

}  // namespace gmb::broker
