// Attaching to shared leases, and waiting for that (docs/shared.md).
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/refusals.h"
#include "broker/machine/sharing.h"
#include "broker/machine/wire_form.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// A session has a lease once: of its Attaches to one name all but the first to
// be answered are refused.
constexpr uint32_t kMostForOneName = 16;
// Of those whose time is over, in one turn: the next goes on.
constexpr int kMostEndedAtOnce = 64;

absl::Status WaitsForIt(const std::string& name) {
  return proto::MakeError(
      v1::TOO_MANY_REQUESTS,
      absl::StrCat("too many Attaches of this session wait for the shared "
                   "lease: wait for an answer: max=",
                   kMostForOneName, " name=", name),
      {.retry_after = absl::Milliseconds(100)});
}

// In whose name the lease is asked back: the first that has time left, or has
// come just now. The others' time is over, which they are told some at a turn.
const PendingAttach* AskerFor(const SharedName& name, quota::Instant now) {
  for (const auto& [arrival, attach] : name.waiting) {
    if (attach.deadline > now || attach.asked == now) return &attach;
  }
  return nullptr;
}

// A shared lease is looked at for each session that has it, and attaching takes
// no slab. So all of a tenant's sessions together have at most
// twice as many leases, each session's counted, as the tenant may have slabs.
absl::Status CheckUses(const State& state, const Tenant& tenant) {
  uint64_t uses = 0;
  for (const uint64_t id : state.sessions->OfTenant(tenant.id))
    uses += state.SessionAt(id).leases->size();
  const uint64_t most = uint64_t{2} * tenant.policy.max_handles;
  if (uses < most) return absl::OkStatus();
  return proto::MakeError(
      v1::TOO_MANY_HANDLES,
      absl::StrCat("the tenant's sessions have as many leases as they may, "
                   "shared ones counted for each: release some, or share "
                   "fewer, larger ones: max=",
                   most));
}

}  // namespace

void Sharing::Attach(Session* session, uint64_t client_id,
                     const v1::Attach& attach, Turn& turn) {
  if (state_.shared_names->WaitingOf(session->id) >=
      state_.options.max_requests_per_session) {
    return sessions_.Refuse(
        session, client_id,
        TooManyRequests(state_.options.max_requests_per_session), turn);
  }
  if (absl::Status stays = CheckStays(state_, *session->tenant); !stays.ok())
    return sessions_.Refuse(session, client_id, stays, turn);
  if (attach.has_exported()) {
    Lease* lease = FindExported(state_, *session, attach.exported());
    if (absl::Status done = lease == nullptr
                                ? NotExported()
                                : AttachNow(session, client_id, lease, turn);
        !done.ok()) {
      sessions_.Refuse(session, client_id, done, turn);
    }
    return;
  }
  const SharedName* name =
      state_.shared_names->Find(*session->tenant, attach.name());
  if (name == nullptr)
    return sessions_.Refuse(session, client_id, NoSuchName(attach.name()),
                            turn);
  const auto waits_already = name->waiting_of.find(session->id);
  if (waits_already != name->waiting_of.end() &&
      waits_already->second >= kMostForOneName) {
    return sessions_.Refuse(session, client_id, WaitsForIt(attach.name()),
                            turn);
  }
  const quota::Instant now = turn.now();
  const PendingAttach pending{.session = session->id,
                              .client_id = client_id,
                              .asked = now,
                              .deadline = now + SaneWait(attach.wait())};
  const uint64_t ahead = name->waiting.size();
  state_.shared_names.Edit({}).Wait(*name, pending);
  if (name->lease.has_value())
    ServeAttaches(&state_.LeaseAt(*name->lease), turn);
  const bool waits =
      state_.shared_names->WaitedFor(session->id, client_id) != nullptr &&
      pending.deadline > turn.now();
  if (!waits) return;
  v1::BrokerMessage message;
  message.set_request_id(client_id);
  message.mutable_waiting()->set_ahead(ahead);
  sessions_.Say(session, std::move(message), turn);
}

void Sharing::ServeAttaches(Lease* lease, Turn& turn) {
  if (!lease->sharing->shared) return;  // not yet: its writer still fills it
  const SharedName* name =
      state_.shared_names->Of(lease->tenant, lease->request);
  if (name == nullptr || name->waiting.empty()) return;
  // It is about to leave, or its pause to end; or it comes back later.
  if (*lease->awaits_pause || *lease->put_off) return;
  if (lease->move->residence == Residence::kResident && !lease->move->torn) {
    for (const PendingAttach& attach :
         state_.shared_names.Edit({}).StopAllWaiting(*name)) {
      Session* session = &state_.SessionAt(attach.session);
      if (absl::Status done = AttachNow(session, attach.client_id, lease, turn);
          !done.ok()) {
        sessions_.Refuse(session, attach.client_id, done, turn);
      }
    }
  } else if (lease->move->residence == Residence::kResident) {
    mover_.Refill(lease, turn);
  } else if (lease->move->residence == Residence::kEvicted &&
             !IsAskedBack(state_, *lease)) {
    const PendingAttach* const asker = AskerFor(*name, turn.now());
    if (asker == nullptr) return;
    const PendingAttach first = *asker;
    state_.shared_names.Edit({}).CountAttempt(*name);
    (void)recalls_.AskBack(first.session, {lease->id}, first.deadline,
                           lease->id, turn);
  }
}

absl::Status Sharing::AttachNow(Session* session, uint64_t client_id,
                                Lease* lease, Turn& turn) {
  if (lease->MappingOf(session->id) != nullptr) {
    return proto::MakeError(
        v1::BAD_STATE,
        absl::StrCat("this session has the lease already: name=",
                     lease->request.share_as, " lease=", lease->id.value));
  }
  if (absl::Status fits = CheckUses(state_, state_.TenantAt(*session->tenant));
      !fits.ok()) {
    return fits;
  }
  const Pool& pool = state_.PoolAt(lease->request.pool);
  if (pool.device->lost)
    return proto::MakeError(v1::DEVICE_LOST, pool.device->problem);
  if (!CanBeTaken(state_, *session, pool, lease->contents()) &&
      !state_.engine->Lease(lease->id)->hard) {
    if (const auto refusal =
            quota_.TryToTell(quota::HardChanged{lease->id, true}, turn)) {
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
    host_.GiveUpRoom(lease);
  }
  mover_.AddUser(lease, {.session = session->id, .request = client_id});
  sessions_.SendSlabs(session, *lease, client_id, /*move=*/0, turn);
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  FillGrant(state_, *lease, answer.mutable_grant());
  answer.mutable_grant()->set_attached(true);
  sessions_.Answer(session, std::move(answer), turn);
  PublishAttached(state_, "lease_attached", *session, *lease, turn);
  return absl::OkStatus();
}

void Sharing::OnBackForAttach(quota::LeaseId id, Turn& turn) {
  const auto lease = state_.leases->find(id);
  if (lease == state_.leases->end()) return;
  if (lease->second->move->residence == Residence::kEvicted)
    mover_.StartRestore(lease->second.get(), turn);
}

void Sharing::GiveUpAttach(Session* session, uint64_t client_id,
                           const absl::Status& why, Turn& turn) {
  const SharedName* waited =
      state_.shared_names->WaitedFor(session->id, client_id);
  if (waited == nullptr) return;
  const SharedName& name = *waited;
  state_.shared_names.Edit({}).StopWaiting(session->id, client_id);
  sessions_.Refuse(session, client_id, why, turn);
  if (!name.waiting.empty() || !name.lease.has_value()) return;
  // Nobody is to give way for it any more.
  const Lease& lease = state_.LeaseAt(*name.lease);
  const Returning* asked = ReturningOf(state_, lease);
  if (asked != nullptr && asked->for_attach.has_value())
    quota_.Tell(quota::Cancel{**lease.asked_back}, turn);
}

void Sharing::GiveUpAllOf(Session* session, const absl::Status& why,
                          Turn& turn) {
  for (const uint64_t client_id : state_.shared_names->RequestsOf(session->id))
    GiveUpAttach(session, client_id, why, turn);
}

void Sharing::RefuseWaiting(const Lease& lease, const absl::Status& why,
                            Turn& turn) {
  const SharedName* name = state_.shared_names->Of(lease.tenant, lease.request);
  if (!lease.sharing->shared || name == nullptr) return;
  RefuseAttaches(state_.shared_names.Edit({}).StopAllWaiting(*name), why, turn);
}

// A session whose wait is over is told; for the others it is asked for anew.
void Sharing::OnAttachDenied(const quota::Denied& denied, quota::LeaseId id,
                             Turn& turn) {
  const auto found = state_.leases->find(id);
  if (found == state_.leases->end()) return;
  Lease* lease = found->second.get();
  if (const auto* name =
          state_.shared_names->Of(lease->tenant, lease->request)) {
    const bool in_time = denied.reason == quota::Reason::kPoolExhausted ||
                         denied.retry_after > quota::Nanoseconds(0);
    const quota::Instant now = turn.now();
    const auto is_over = [&](const PendingAttach& attach) {
      return attach.session == denied.session.value &&
             (!in_time || denied.pausing || attach.deadline <= now);
    };
    RefuseAttaches(state_.shared_names.Edit({}).StopWaiting(*name, is_over),
                   DenialStatus(denied, lease->bytes), turn);
  }
}

void Sharing::ExpireAttaches(Turn& turn) {
  const quota::Instant now = turn.now();
  for (int i = 0; i < kMostEndedAtOnce && state_.shared_names->due() <= now;
       ++i) {
    const auto [session_id, client_id] = state_.shared_names->First();
    Session* session = &state_.SessionAt(session_id);
    const SharedName& shared =
        *state_.shared_names->WaitedFor(session_id, client_id);
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
    GiveUpAttach(session, client_id, why, turn);
  }
}

void Sharing::RefuseAttaches(const std::vector<PendingAttach>& waiting,
                             const absl::Status& status, Turn& turn) {
  for (const PendingAttach& attach : waiting) {
    sessions_.Refuse(&state_.SessionAt(attach.session), attach.client_id,
                     status, turn);
  }
}

}  // namespace gmb::broker
