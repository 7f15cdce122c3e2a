// Who attaches to a shared lease, and who waits for that (docs/shared.md).
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/refusals.h"
#include "broker/core/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {

void Core::Attach(Session* session, uint64_t client_id,
                  const v1::Attach& attach, Afterwards* after) {
  if (shared_names_.WaitingOf(session->id) >=
      options_.max_requests_per_session) {
    return Refuse(session, client_id,
                  TooManyRequests(options_.max_requests_per_session), after);
  }
  if (absl::Status stays = CheckStays(*session->tenant); !stays.ok())
    return Refuse(session, client_id, stays, after);
  const SharedName* name = shared_names_.Find(*session->tenant, attach.name());
  if (name == nullptr)
    return Refuse(session, client_id, NoSuchName(attach.name()), after);
  const quota::Instant now = deps_.clock->Now();
  const PendingAttach pending{.session = session->id,
                              .client_id = client_id,
                              .asked = now,
                              .deadline = now + SaneWait(attach.wait())};
  const uint64_t ahead = name->waiting.size();
  shared_names_.Wait(*name, pending);
  if (name->lease.has_value())
    ServeAttaches(leases_.at(*name->lease).get(), after);
  const bool waits =
      shared_names_.WaitedFor(session->id, client_id) != nullptr &&
      pending.deadline > deps_.clock->Now();
  if (!waits) return;
  v1::BrokerMessage message;
  message.set_request_id(client_id);
  message.mutable_waiting()->set_ahead(ahead);
  Say(session, std::move(message), after);
}

// Those who wait for the lease get it once it is on the device and whole, and
// until then it is asked back for them.
void Core::ServeAttaches(Lease* lease, Afterwards* after) {
  if (!lease->shared) return;  // not yet: its writer still fills it
  const SharedName* name = shared_names_.Of(lease->tenant, lease->request);
  if (name == nullptr || name->waiting.empty()) return;
  if (lease->awaits_pause) return;  // it is about to leave, or its pause to end
  if (lease->residence == Residence::kResident && !lease->torn) {
    for (const PendingAttach& attach : shared_names_.StopAllWaiting(*name)) {
      Session* session = sessions_.at(attach.session);
      if (absl::Status done =
              AttachNow(session, attach.client_id, lease, after);
          !done.ok()) {
        Refuse(session, attach.client_id, done, after);
      }
    }
  } else if (lease->residence == Residence::kResident && !lease->asked()) {
    Refill(lease, after);
  } else if (lease->residence == Residence::kEvicted && !IsAskedBack(*lease)) {
    const PendingAttach first = name->waiting.front();
    const quota::RequestId request{next_request_++};
    shared_names_.CountAttempt(*name);
    lease->asked_back = request;
    restoring_.emplace(request, Returning{first.session, lease->id});
    Tell(quota::Restore{request,
                        quota::SessionId{first.session},
                        {lease->id},
                        first.deadline},
         after);
  }
}

absl::Status Core::AttachNow(Session* session, uint64_t client_id, Lease* lease,
                             Afterwards* after) {
  if (lease->MappingOf(session->id) != nullptr) {
    return proto::MakeError(
        v1::BAD_STATE,
        absl::StrCat("this session has the lease already: name=",
                     lease->request.share_as, " lease=", lease->id.value));
  }
  const Pool& pool = *pools_.at(lease->request.pool);
  if (pool.lost) return proto::MakeError(v1::DEVICE_LOST, pool.problem);
  if (!CanBeTaken(*session, pool, lease->request.contents) &&
      !engine_.Lease(lease->id)->hard) {
    const quota::HardChanged change{lease->id, true};
    if (const auto refusal = engine_.Check(change)) {
      if (refusal->reason != quota::Reason::kOvercommitted)
        return RefusalStatus(*refusal, pool.uuid());
      return proto::MakeError(
          v1::OVERCOMMITTED,
          absl::StrCat("this session's gate is off, so that nobody could take "
                       "the shared lease, and guarantees of others rest on its "
                       "bytes: turn the gate on first: bytes=",
                       lease->bytes),
          {.deficit_bytes = refusal->deficit_bytes});
    }
    Tell(change, after);
    GiveUpRoom(lease);
  }
  lease->mappings.push_back({.session = session->id});
  session->leases.insert(lease->id);
  SendSlabs(session, *lease, client_id, /*move=*/0);
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  FillGrant(*lease, answer.mutable_grant());
  answer.mutable_grant()->set_attached(true);
  Answer(session, std::move(answer), after);
  PublishAttached("lease_attached", *session, *lease);
  return absl::OkStatus();
}

void Core::OnBackForAttach(quota::LeaseId id, Afterwards* after) {
  const auto lease = leases_.find(id);
  if (lease == leases_.end()) return;
  if (lease->second->residence == Residence::kEvicted)
    StartRestore(lease->second.get(), after);
}

void Core::GiveUpAttach(Session* session, uint64_t client_id,
                        const absl::Status& why, Afterwards* after) {
  const SharedName& name = *shared_names_.WaitedFor(session->id, client_id);
  shared_names_.StopWaiting(session->id, client_id);
  Refuse(session, client_id, why, after);
  if (!name.waiting.empty() || !name.lease.has_value()) return;
  // Nobody is to give way for it any more.
  const Lease& lease = *leases_.at(*name.lease);
  if (!IsAskedBack(lease)) return;
  if (restoring_.at(*lease.asked_back).for_attach.has_value())
    Tell(quota::Cancel{*lease.asked_back}, after);
}

// Whose wait is over is told; for the others it is asked for anew.
void Core::OnAttachDenied(const quota::Denied& denied, quota::LeaseId id,
                          Afterwards* after) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  Lease* lease = found->second.get();
  if (const auto* name = shared_names_.Of(lease->tenant, lease->request)) {
    const bool in_time = denied.reason == quota::Reason::kPoolExhausted;
    const quota::Instant now = deps_.clock->Now();
    const auto is_over = [&](const PendingAttach& attach) {
      return attach.session == denied.session.value &&
             (!in_time || denied.pausing || attach.deadline <= now);
    };
    RefuseAttaches(shared_names_.StopWaiting(*name, is_over),
                   DenialStatus(denied, lease->bytes), after);
  }
  AdvanceOthers(denied.request, nullptr, after);
}

void Core::ExpireAttaches(Afterwards* after) {
  const quota::Instant now = deps_.clock->Now();
  while (shared_names_.due() <= now) {
    const auto [session_id, client_id] = shared_names_.First();
    Session* session = sessions_.at(session_id);
    const SharedName& shared = *shared_names_.WaitedFor(session_id, client_id);
    const std::string& name = shared.name;
    const bool sealed = shared.lease.has_value();
    const absl::Status why =
        sealed ? proto::MakeError(
                     v1::POOL_EXHAUSTED,
                     absl::StrCat("the shared lease was not back on the device "
                                  "in time: wait longer: name=",
                                  name),
                     {.retry_after = absl::Milliseconds(100)})
               : proto::MakeError(
                     v1::BAD_STATE,
                     absl::StrCat("the shared lease is not sealed: its writer "
                                  "is still filling it; wait longer: name=",
                                  name),
                     {.retry_after = absl::Milliseconds(100)});
    GiveUpAttach(session, client_id, why, after);
  }
}

void Core::RefuseAttaches(const std::vector<PendingAttach>& waiting,
                          const absl::Status& status, Afterwards* after) {
  for (const PendingAttach& attach : waiting) {
    Refuse(sessions_.at(attach.session), attach.client_id, status, after);
  }
}

}  // namespace gmb::broker
