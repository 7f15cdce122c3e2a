// Who attaches to a shared lease, and who waits for that (docs/shared.md).
#include <algorithm>
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
  if (session->attaching.size() >= options_.max_requests_per_session) {
    return Refuse(session, client_id,
                  TooManyRequests(options_.max_requests_per_session), after);
  }
  if (absl::Status stays = CheckStays(*session->tenant); !stays.ok())
    return Refuse(session, client_id, stays, after);
  const auto name = shared_.find({*session->tenant, attach.name()});
  if (name == shared_.end())
    return Refuse(session, client_id, NoSuchName(attach.name()), after);
  const quota::Instant now = deps_.clock->Now();
  const PendingAttach pending{.session = session->id,
                              .client_id = client_id,
                              .asked = now,
                              .deadline = now + SaneWait(attach.wait())};
  session->attaching[client_id] = attach.name();
  attaches_due_.emplace(pending.deadline, session->id, client_id);
  const uint64_t ahead = name->second.waiting.size();
  name->second.waiting.push_back(pending);
  if (name->second.lease.has_value())
    ServeAttaches(leases_.at(*name->second.lease).get(), after);
  const bool waits = session->attaching.contains(client_id) &&
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
  SharedName* name = NameOf(lease->tenant, lease->request);
  if (name == nullptr || name->waiting.empty()) return;
  if (lease->awaits_pause) return;  // it is about to leave, or its pause to end
  if (lease->residence == Residence::kResident && !lease->torn) {
    const std::vector<PendingAttach> waiting =
        std::exchange(name->waiting, std::vector<PendingAttach>());
    name->attempts = 0;
    for (const PendingAttach& attach : waiting) {
      Session* session = sessions_.at(attach.session).get();
      EndAttach(attach);
      if (absl::Status done =
              AttachNow(session, attach.client_id, lease, after);
          !done.ok()) {
        Refuse(session, attach.client_id, done, after);
      }
    }
  } else if (lease->residence == Residence::kResident && !lease->asked()) {
    Refill(lease, after);
  } else if (lease->residence == Residence::kEvicted && !IsAskedBack(*lease)) {
    const PendingAttach& first = name->waiting.front();
    const quota::RequestId request{next_request_++};
    ++name->attempts;
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
  SharedName& name =
      shared_.at({*session->tenant, session->attaching.at(client_id)});
  const auto it = std::find_if(name.waiting.begin(), name.waiting.end(),
                               [&](const PendingAttach& attach) {
                                 return attach.session == session->id &&
                                        attach.client_id == client_id;
                               });
  const PendingAttach given_up = *it;
  name.waiting.erase(it);
  RefuseAttaches({given_up}, why, after);
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
  if (SharedName* name = NameOf(lease->tenant, lease->request)) {
    const bool in_time = denied.reason == quota::Reason::kPoolExhausted;
    const quota::Instant now = deps_.clock->Now();
    const auto asked = std::stable_partition(
        name->waiting.begin(), name->waiting.end(),
        [&](const PendingAttach& attach) {
          return attach.session != denied.session.value ||
                 (in_time && !denied.pausing && attach.deadline > now);
        });
    const std::vector<PendingAttach> refused(asked, name->waiting.end());
    name->waiting.erase(asked, name->waiting.end());
    name->attempts = 0;
    RefuseAttaches(refused, DenialStatus(denied, lease->bytes), after);
  }
  AdvanceOthers(denied.request, nullptr, after);
}

void Core::ExpireAttaches(Afterwards* after) {
  const quota::Instant now = deps_.clock->Now();
  while (!attaches_due_.empty()) {
    const auto [deadline, session_id, client_id] = *attaches_due_.begin();
    if (deadline > now) return;
    Session* session = sessions_.at(session_id).get();
    const std::string& name = session->attaching.at(client_id);
    const bool sealed = shared_.at({*session->tenant, name}).lease.has_value();
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

quota::Instant Core::AttachesDue() const {
  return attaches_due_.empty() ? quota::Instant::Max()
                               : std::get<0>(*attaches_due_.begin());
}

void Core::RefuseAttaches(const std::vector<PendingAttach>& waiting,
                          const absl::Status& status, Afterwards* after) {
  for (const PendingAttach& attach : waiting) {
    EndAttach(attach);
    Refuse(sessions_.at(attach.session).get(), attach.client_id, status, after);
  }
}

void Core::EndAttach(const PendingAttach& attach) {
  sessions_.at(attach.session)->attaching.erase(attach.client_id);
  attaches_due_.erase({attach.deadline, attach.session, attach.client_id});
}

}  // namespace gmb::broker
