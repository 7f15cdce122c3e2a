// Shared leases: names, who attaches, and when they end (docs/shared.md).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "broker/core/refusals.h"
#include "broker/core/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr size_t kLongestName = 128;

absl::Status NoSuchName(absl::string_view name) {
  return proto::MakeError(
      v1::NO_SUCH_LEASE,
      absl::StrCat("the tenant has no shared lease of this name, or its writer "
                   "ended before it was sealed: make one: name=",
                   name.substr(0, kLongestName)));
}

}  // namespace

absl::Status Core::CheckName(quota::TenantId tenant,
                             const v1::Acquire& acquire) const {
  const std::string& name = acquire.share_as();
  if (name.empty()) {
    if (!acquire.keep()) return absl::OkStatus();
    return proto::MakeError(v1::BAD_REQUEST,
                            "only a lease that is to be shared can be kept: "
                            "give it a name",
                            {.field = "share_as"});
  }
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  if (name.size() > kLongestName || !printable) {
    return proto::MakeError(v1::BAD_REQUEST,
                            absl::StrCat("a shared lease's name has 1 to ",
                                         kLongestName, " printable characters"),
                            {.field = "share_as"});
  }
  if (acquire.contents() != v1::PRESERVE &&
      acquire.contents() != v1::CONTENTS_UNSPECIFIED) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        "what is shared is sealed, so its contents have to be PRESERVE",
        {.field = "contents"});
  }
  if (shared_.contains({tenant, name})) {
    return proto::MakeError(
        v1::NAME_TAKEN,
        absl::StrCat("a shared lease of this name is there, or is being made: "
                     "attach to it: name=",
                     name),
        {.field = "share_as"});
  }
  return absl::OkStatus();
}

// Of a name that is this very request's; another may have it by now.
SharedName* Core::NameOf(quota::TenantId tenant,
                         const PendingAcquire& request) {
  const auto it = shared_.find({tenant, request.share_as});
  const bool own = it != shared_.end() && it->second.request == request.id;
  return own ? &it->second : nullptr;
}

// The lease has ended, or will never be: nobody can attach.
void Core::EndName(quota::TenantId tenant, const PendingAcquire& request,
                   Afterwards* after) {
  SharedName* name = NameOf(tenant, request);
  if (name == nullptr) return;
  const std::vector<PendingAttach> waiting = std::move(name->waiting);
  shared_.erase({tenant, request.share_as});
  RefuseAttaches(waiting, NoSuchName(request.share_as), after);
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

// It was sealed: from now on it is its tenant's.
void Core::Share(Lease* lease, Afterwards* after) {
  SharedName* name = NameOf(lease->tenant, lease->request);
  if (lease->shared || name == nullptr) return;
  lease->shared = true;
  name->lease = lease->id;
  shared_leases_.insert(lease->id);
  lease->asked_back =
      engine_.RestoreOf(lease->id);  // its writer may wait for it
  Tell(quota::Shared{lease->id}, after);
  v1::Event event = NewEvent("lease_shared", lease->tenant);
  event.set_session_id(lease->request.session);
  event.set_lease_id(lease->id.value);
  event.set_device(pools_.at(lease->request.pool)->uuid());
  event.set_bytes(lease->bytes);
  event.set_message(absl::StrCat("as ", lease->request.share_as));
  deps_.events->Publish(std::move(event));
  ServeAttaches(lease, after);
}

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
  const PendingAttach pending{
      .session = session->id,
      .client_id = client_id,
      .deadline = deps_.clock->Now() + SaneWait(attach.wait())};
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

void Core::PublishAttached(absl::string_view kind, const Session& session,
                           const Lease& lease) const {
  v1::Event event = NewEvent(kind, lease.tenant);
  event.set_session_id(session.id);
  event.set_lease_id(lease.id.value);
  event.set_device(pools_.at(lease.request.pool)->uuid());
  event.set_bytes(lease.bytes);
  event.set_message(absl::StrCat(lease.mappings.size(), " attached to ",
                                 lease.request.share_as));
  deps_.events->Publish(std::move(event));
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

// A session that has ended, before anything else is done: nothing leads to it
// any more.
void Core::LeaveShared(Session* session) {
  const auto is_its = [&](const auto& entry) {
    return entry.session == session->id;
  };
  for (const quota::LeaseId id : session->leases) {
    Lease* lease = leases_.at(id).get();
    if (lease->shared) std::erase_if(lease->mappings, is_its);
  }
  for (const auto& [client_id, name] : session->attaching) {
    auto& waiting = shared_.at({*session->tenant, name}).waiting;
    for (const PendingAttach& attach : waiting) {
      if (is_its(attach))
        attaches_due_.erase({attach.deadline, session->id, attach.client_id});
    }
    std::erase_if(waiting, is_its);
  }
  session->attaching.clear();
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

// A Map of a lease that others may be using meanwhile.
void Core::OnSharedMapped(Session* session, Lease* lease,
                          const absl::Status& failed, Afterwards* after) {
  if (!failed.ok()) AnswerMembers(session, NotBroughtBack(failed), after);
  if (!lease->asked() && ForgetOverdue(lease)) Soften(lease, after);
  if (lease->residence == Residence::kRestoring) {
    TryEndRestore(lease, after);
  } else if (!lease->asked()) {
    moving_.erase(lease->id);
  }
  AdvanceRestore(session, after);
  ServeAttaches(lease, after);
}

// The session has it no longer; it stays for those who do.
void Core::Detach(Session* session, Lease* lease, bool reuse,
                  Afterwards* after) {
  std::erase_if(lease->mappings, [&](const Mapping& mapping) {
    return mapping.session == session->id;
  });
  const std::vector<Session*> users = UsersOf(*lease);
  lease->awaits_pause &= std::any_of(
      users.begin(), users.end(),
      [this](const Session* user) { return pausing_.contains(user->id); });
  PublishAttached("lease_detached", *session, *lease);
  if (lease->mappings.empty()) {
    if (!lease->request.keep || lease->dropped)
      return EndLease(lease->id, reuse, after);
    lease->unused_since = deps_.clock->Now();
  }
  if (lease->residence == Residence::kEvicting) {
    TryEndEviction(lease, after);
  } else if (lease->residence == Residence::kRestoring) {
    TryEndRestore(lease, after);
  } else if (!lease->asked()) {
    moving_.erase(lease->id);
  }
  // It may have been the last one that nobody could take it from.
  if (lease->residence == Residence::kResident) Soften(lease, after);
  ServeAttaches(lease, after);
}

void Core::Drop(Session* session, uint64_t client_id, const std::string& name,
                Afterwards* after) {
  const absl::StatusOr<uint32_t> attached =
      DropName(*session->tenant, name, after);
  if (!attached.ok())
    return Refuse(session, client_id, attached.status(), after);
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  answer.mutable_dropped()->set_name(name);
  Answer(session, std::move(answer), after);
}

absl::StatusOr<uint32_t> Core::DropName(quota::TenantId tenant,
                                        const std::string& name,
                                        Afterwards* after) {
  const auto it = shared_.find({tenant, name});
  // One that is being made is its writer's to release.
  if (it == shared_.end() || !it->second.lease.has_value())
    return NoSuchName(name);
  Lease* lease = leases_.at(*it->second.lease).get();
  const auto attached = static_cast<uint32_t>(lease->mappings.size());
  EndName(tenant, lease->request, after);
  lease->dropped = true;
  if (attached == 0) EndLease(lease->id, /*reuse=*/true, after);
  return attached;
}

absl::StatusOr<uint32_t> Core::DropLease(absl::string_view tenant_name,
                                         const std::string& name) {
  Afterwards after;
  absl::StatusOr<uint32_t> attached;
  {
    ipc::MutexLock lock(&mu_);
    const Tenant* tenant = FindTenant(tenant_name);
    if (tenant == nullptr) return NoSuchTenant(tenant_name);
    attached = DropName(tenant->id, name, &after);
    Maintain(&after);
  }
  after.Run(this);
  return attached;
}

// Of a tenant that is being deleted: none outlives its sessions.
void Core::DropAll(quota::TenantId tenant, Afterwards* after) {
  const std::vector<quota::LeaseId> shared(shared_leases_.begin(),
                                           shared_leases_.end());
  for (const quota::LeaseId id : shared) {
    Lease* lease = leases_.at(id).get();
    if (lease->tenant != tenant) continue;
    EndName(tenant, lease->request, after);
    lease->dropped = true;
    if (lease->mappings.empty()) EndLease(id, /*reuse=*/false, after);
  }
}

void Core::EndKept(absl::string_view tenant_name) {
  Afterwards after;
  {
    ipc::MutexLock lock(&mu_);
    const Tenant* tenant = FindTenant(tenant_name);
    if (tenant == nullptr || !tenant->sessions.empty()) return;
    DropAll(tenant->id, &after);
    Maintain(&after);
  }
  after.Run(this);
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

}  // namespace gmb::broker
