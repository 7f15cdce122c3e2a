// Leases that come back to the device, all of a session's or none.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/refusals.h"
#include "broker/core/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr uint32_t kMaxAttempts = 3;
// While nobody outside takes what is freed.
constexpr uint32_t kMostAttempts = 256;

}  // namespace

void Core::Restore(Session* session, uint64_t client_id,
                   const v1::Restore& restore, Afterwards* after) {
  if (session->gate == nullptr) {
    return Refuse(session, client_id,
                  proto::MakeError(v1::BAD_STATE, "this session has no gate"),
                  after);
  }
  if (session->restores.size() >= options_.max_requests_per_session) {
    return Refuse(session, client_id,
                  TooManyRequests(options_.max_requests_per_session), after);
  }
  session->restores.emplace(client_id,
                            deps_.clock->Now() + SaneWait(restore.wait()));
  waking_.insert(session->id);
  AdvanceRestore(session, after);
}

// The next step towards gates that are open, if there is one: everything that
// ends a step of a session's leases comes here.
void Core::AdvanceRestore(Session* session, Afterwards* after) {
  if (session->gate == nullptr) return;
  const std::vector<Session*> members = groups_.Members(session);
  const auto any = [&](auto holds) {
    return std::any_of(members.begin(), members.end(), holds);
  };
  if (any([](const Session* m) { return m->restoring.has_value(); })) return;
  if (!any([](const Session* m) { return m->gate->closed(); })) {
    if (!any([](const Session* m) {
          return m->gate->pausing_until().has_value();
        })) {
      AnswerMembers(session, absl::OkStatus(), after);
    }
    return;
  }
  Away away = AwayOf(members);
  if (away.moving) return;
  if (away.evicted.empty() && away.unready.empty() && !away.asked_back) {
    for (Session* member : members) Reopen(member, after);
    return;
  }
  if (!any([](const Session* m) { return !m->restores.empty(); })) return;
  for (const auto& [lease, user] : away.unready) MakeReady(lease, user, after);
  // What could not even begin has answered all of them.
  const bool wanted =
      any([](const Session* m) { return !m->restores.empty(); });
  if (wanted && !away.evicted.empty())
    AskForRestore(members, std::move(away.evicted), after);
}

Core::Away Core::AwayOf(const std::vector<Session*>& members) const {
  Away away;
  for (Session* member : members) {
    for (const quota::LeaseId id : member->leases) {
      Lease* lease = leases_.at(id).get();
      const Mapping& mapping = *lease->MappingOf(member->id);
      away.moving |= lease->residence == Residence::kEvicting ||
                     lease->residence == Residence::kRestoring ||
                     mapping.asked ||
                     // Others are paused so that it can be taken.
                     (lease->awaits_pause && mapping.unmapped);
      if (lease->residence == Residence::kEvicted) {
        if (IsAskedBack(*lease)) {
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
void Core::MakeReady(Lease* lease, Session* session, Afterwards* after) {
  if (lease->residence == Residence::kRestoring) return;  // of the same group
  if (!lease->shared || lease->torn) return Refill(lease, after);
  moving_.insert(lease->id);
  StartMapping(lease, lease->MappingOf(session->id), after);
}

void Core::Refill(Lease* lease, Afterwards* after) {
  lease->residence = Residence::kRestoring;
  lease->move_started = deps_.clock->Now();
  lease->moved = absl::OkStatus();
  moving_.insert(lease->id);
  if (lease->torn) {
    CopyContents(lease, device::CopyDirection::kIn, {0, lease->slabs.size()},
                 after);
  }
  MapForUsers(lease, after);
  TryEndRestore(lease, after);
}

// Of those who share it, the ones that want it; the others map it when they do.
void Core::MapForUsers(Lease* lease, Afterwards* after) {
  for (Mapping& mapping : lease->mappings) {
    const bool wanted =
        !lease->shared || WantsIn(sessions_.at(mapping.session));
    if (mapping.unmapped && wanted) StartMapping(lease, &mapping, after);
  }
}

// In the name of the member that waits the longest.
void Core::AskForRestore(const std::vector<Session*>& members,
                         std::vector<quota::LeaseId> evicted,
                         Afterwards* after) {
  Session* asking = nullptr;
  quota::Instant deadline;
  for (Session* member : members) {
    ++member->restore_attempts;
    for (const auto& [id, until] : member->restores) {
      if (asking != nullptr && until <= deadline) continue;
      asking = member;
      deadline = until;
    }
  }
  const quota::RequestId request{next_request_++};
  asking->restoring = request;
  restoring_.emplace(request, Returning{asking->id, std::nullopt});
  for (const quota::LeaseId id : evicted) {
    Lease* lease = leases_.at(id).get();
    if (lease->shared) lease->asked_back = request;
  }
  Tell(quota::Restore{request, quota::SessionId{asking->id}, std::move(evicted),
                      deadline},
       after);
}

void Core::Reopen(Session* session, Afterwards* after) {
  if (!session->gate->Reopen()) {
    return AnswerRestores(
        session,
        proto::MakeError(v1::BAD_STATE,
                         "the gate's word was written over while it was "
                         "closed: this process breaks the gate's rules"),
        after);
  }
  AnswerRestores(session, absl::OkStatus(), after);
}

void Core::AnswerRestores(Session* session, const absl::Status& status,
                          Afterwards* after) {
  std::map<uint64_t, quota::Instant> waiting;
  waiting.swap(session->restores);
  session->restore_attempts = 0;
  waking_.erase(session->id);
  for (const auto& [client_id, until] : waiting) {
    if (!status.ok()) {
      Refuse(session, client_id, status, after);
      continue;
    }
    v1::BrokerMessage answer;
    answer.set_request_id(client_id);
    answer.mutable_restored();
    Answer(session, std::move(answer), after);
  }
}

void Core::AnswerMembers(Session* session, const absl::Status& status,
                         Afterwards* after) {
  for (Session* member : groups_.Members(session))
    AnswerRestores(member, status, after);
}

void Core::OnRestored(const quota::Restored& restored, Afterwards* after) {
  auto it = restoring_.find(restored.request);
  if (it == restoring_.end()) return;
  const Returning returning = it->second;
  restoring_.erase(it);
  if (returning.for_attach.has_value())
    return OnBackForAttach(*returning.for_attach, after);
  Session* session = sessions_.at(returning.session);
  session->restoring.reset();
  std::vector<Lease*> back;
  for (const quota::LeaseId id : AwayOf(groups_.Members(session)).evicted) {
    if (!engine_.Lease(id)->evicted) back.push_back(leases_.at(id).get());
  }
  // What was asked for and has been left meanwhile: it is charged, so it comes.
  for (const quota::LeaseId id : shared_leases_) {
    Lease* lease = leases_.at(id).get();
    if (lease->asked_back == restored.request && !engine_.Lease(id)->evicted) {
      back.push_back(lease);
    }
  }
  for (Lease* lease : back) {
    // A group's members may share one.
    if (lease->residence == Residence::kEvicted) StartRestore(lease, after);
  }
  if (back.empty()) AdvanceRestore(session, after);
}

// Denied: of the engine's request; each of the client's has its own deadline.
void Core::OnRestoreDenied(const quota::Denied& denied, Session* session,
                           Afterwards* after) {
  session->restoring.reset();
  AdvanceOthers(denied.request, session, after);
  // What ends the pause comes back to it; so does its deadline.
  if (denied.pausing) return;
  const quota::Instant now = deps_.clock->Now();
  bool another = false;
  const std::vector<Session*> members = groups_.Members(session);
  for (const Session* member : members) {
    for (const auto& [id, until] : member->restores) another |= until > now;
  }
  if (denied.reason == quota::Reason::kPoolExhausted && another) {
    return AdvanceRestore(session, after);
  }
  uint64_t bytes = 0;
  for (const quota::LeaseId id : AwayOf(members).evicted)
    bytes += leases_.at(id)->bytes;
  v1::Event event = NewEvent("restore_failed", session->tenant);
  event.set_session_id(session->id);
  event.set_bytes(bytes);
  event.set_message(std::string(quota::ReasonName(denied.reason)));
  deps_.events->Publish(std::move(event));
  AnswerMembers(session, DenialStatus(denied, bytes), after);
}

void Core::StartRestore(Lease* lease, Afterwards* after) {
  Pool* pool = pools_.at(lease->request.pool).get();
  lease->residence = Residence::kRestoring;
  lease->move_started = deps_.clock->Now();
  lease->moved = absl::OkStatus();
  moving_.insert(lease->id);
  PublishMove("restore_started", *lease, {}, "");
  TakePlan plan = pool->slabs.Take(lease->tenant, lease->bytes);
  lease->slabs = std::move(plan.taken);
  if (plan.create_bytes.empty()) return FillAndMap(lease, after);
  lease->preparing = true;
  Give(pool,
       PrepareJob{lease->id,
                  {std::move(plan.destroy), std::move(plan.create_bytes)}},
       after);
}

// Its slabs are there: clients map them while they are being filled.
void Core::FillAndMap(Lease* lease, Afterwards* after) {
  if (lease->request.contents == v1::PRESERVE) {
    if (host_books_.TrueCopy(lease->id) == nullptr)
      return LoseContents(lease, after);
    CopyContents(lease, device::CopyDirection::kIn, {0, lease->slabs.size()},
                 after);
  }
  MapForUsers(lease, after);
  TryEndRestore(lease, after);
}

// There is nothing to fill it with: it stays evicted, and who asks is told.
void Core::LoseContents(Lease* lease, Afterwards* after) {
  GiveBack(pools_.at(lease->request.pool).get(), *lease, {}, after);
  lease->slabs.clear();
  lease->residence = Residence::kEvicted;
  moving_.erase(lease->id);
  PublishMove("restore_failed", *lease, {}, "its contents are gone");
  Tell(quota::Evicted{lease->id}, after);
  AnswerUsers(
      lease,
      proto::MakeError(v1::CONTENTS_LOST,
                       absl::StrCat("a lease's contents are gone: release it "
                                    "and make them anew: lease=",
                                    lease->id.value)),
      after);
}

// Not all of its slabs could be created: it stays evicted.
void Core::OnRestoreNotPrepared(Pool* pool, Lease* lease,
                                const std::vector<uint64_t>& not_created,
                                const absl::Status& status, Afterwards* after) {
  for (const uint64_t bytes : not_created) pool->slabs.CreateFailed(bytes);
  GiveBack(pool, *lease, {}, after);
  lease->slabs.clear();
  lease->residence = Residence::kEvicted;
  moving_.erase(lease->id);
  PublishMove("restore_failed", *lease, {}, status.message());
  Tell(quota::Evicted{lease->id}, after);
  // Whoever holds on to a slab for a moment costs a moment; who goes past the
  // broker takes whatever is freed.
  const bool passing =
      absl::IsResourceExhausted(status) && pool->missing_bytes == 0;
  if (RestoreAttempts(*lease) >= (passing ? kMostAttempts : kMaxAttempts)) {
    AnswerUsers(
        lease,
        proto::MakeError(
            absl::IsResourceExhausted(status) ? v1::POOL_EXHAUSTED
                                              : v1::DEVICE_ERROR,
            absl::StrCat("the device could not make the slabs again; contents "
                         "are kept, try again: ",
                         status.message()),
            {.retry_after = absl::Milliseconds(500)}),
        after);
  }
  AdvanceUsers(lease, after);
}

void Core::OnMapped(Session* session, const v1::Mapped& mapped,
                    Afterwards* after) {
  Lease* lease = FindLease(*session, mapped.lease_id());
  if (lease == nullptr || lease->residence == Residence::kEvicting) return;
  Mapping* mapping = lease->MappingOf(session->id);
  if (!mapping->asked || mapping->move != mapped.move()) return;
  mapping->asked = false;
  mapping->answer_by = quota::Instant::Max();
  mapping->unmapped = mapped.has_error();
  absl::Status failed;
  if (mapped.has_error()) failed = proto::FromWireError(mapped.error());
  if (lease->shared) return OnSharedMapped(session, lease, failed, after);
  lease->moved.Update(failed);
  TryEndRestore(lease, after);
}

void Core::TryEndRestore(Lease* lease, Afterwards* after) {
  // Who shares it may leave at any time.
  if (lease->preparing) return;
  // A shared one is back once it is filled: who maps it does so on his own
  // account.
  const bool mapping = lease->asked();
  if (lease->copies > 0 || (mapping && !(lease->shared && lease->moved.ok())))
    return;
  const quota::Instant now = deps_.clock->Now();
  if (!mapping && lease->ForgetOverdue()) Soften(lease, after);
  if (!lease->moved.ok()) return UndoRestore(lease, after);
  if (!mapping) moving_.erase(lease->id);
  lease->residence = Residence::kResident;
  lease->torn = false;
  lease->resident_since = now;
  lease->restore_time = now - lease->move_started;
  if (!lease->shared) {
    lease->backed_epoch = sessions_.at(lease->request.session)->gate->epoch();
  }
  PublishMove("restored", *lease, lease->restore_time, "");
  AdvanceUsers(lease, after);
}

// What was asked for fails; its contents are where they are authoritative.
void Core::UndoRestore(Lease* lease, Afterwards* after) {
  const absl::Status why = std::exchange(lease->moved, absl::OkStatus());
  PublishMove("restore_failed", *lease, {}, why.message());
  const bool in_host_pool = lease->request.contents != v1::PRESERVE ||
                            host_books_.TrueCopy(lease->id) != nullptr;
  AnswerUsers(lease, NotBroughtBack(why), after);
  if (in_host_pool) {
    lease->torn = lease->request.contents == v1::PRESERVE;
    return StartEviction(
        lease,
        deps_.clock->Now() + quota::Nanoseconds(options_.planner.unmap_grace),
        lease->may_terminate, after);
  }
  moving_.erase(lease->id);
  lease->residence = Residence::kResident;
}

// Restores whose own deadline is over: their leases may still be on their way
// out, their pause may last, or another of the group waits longer.
void Core::ExpireRestores(Afterwards* after) {
  const quota::Instant now = deps_.clock->Now();
  const std::vector<uint64_t> waking(waking_.begin(), waking_.end());
  for (const uint64_t id : waking) {
    Session* session = sessions_.at(id);
    std::vector<uint64_t> over;
    for (const auto& [client_id, until] : session->restores) {
      if (until <= now) over.push_back(client_id);
    }
    for (const uint64_t client_id : over) {
      session->restores.erase(client_id);
      Refuse(session, client_id,
             proto::MakeError(v1::POOL_EXHAUSTED,
                              "the session's memory was not back in time: wait "
                              "longer",
                              {.retry_after = absl::Milliseconds(100)}),
             after);
    }
    if (session->restores.empty()) waking_.erase(id);
  }
}

}  // namespace gmb::broker
