// Leases that leave the device: copied out, unmapped, destroyed.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/machine/lease_mover.h"
#include "broker/machine/lease_users.h"
#include "broker/machine/news.h"
#include "broker/machine/recorder.h"
#include "broker/machine/wire_form.h"

namespace gmb::broker {
namespace {

// Of those whose time is over, in one turn: the next goes on.
constexpr int kMostOverdueAtOnce = 64;

// A process that nobody can kill is as one that nobody may.
bool MayKill(const Lease& lease, const Session& session) {
  return lease.move->may_terminate && session.can_be_killed();
}

}  // namespace

void LeaseMover::AddUser(Lease* lease, const Mapping& mapping) {
  lease->move.Edit({}).mappings.push_back(mapping);
  Session& session = state_.SessionAt(mapping.session);
  if (session.leases.Edit({}).insert(lease->id).second)
    session.leased_bytes.Edit({}) += lease->bytes;
  index_.Touch(lease);
}

void LeaseMover::MarkMapped(Lease* lease, const Session& session) {
  lease->move.Edit({}).MappingOf(session.id)->mapped = true;
  Recorder(state_).Touch(lease->id);
}

void LeaseMover::DropUser(Lease* lease, Session* session) {
  std::erase_if(lease->move.Edit({}).mappings, [&](const Mapping& mapping) {
    return mapping.session == session->id;
  });
  if (session->leases.Edit({}).erase(lease->id) > 0)
    session->leased_bytes.Edit({}) -= lease->bytes;
  Recorder(state_).Touch(lease->id);
  // Another that ends with its session is forgotten.
  if (lease->sharing->shared) index_.Touch(lease);
}

void LeaseMover::GoOn(Lease* lease, Turn& turn) {
  if (lease->move->residence == Residence::kEvicting) {
    // It may have been the one that did not answer.
    host_.Soften(*lease, turn);
    TryEndEviction(lease, turn);
  } else if (lease->move->residence == Residence::kRestoring) {
    TryEndRestore(lease, turn);
  } else if (!lease->asked()) {
    state_.moving.Edit({}).erase({lease->tenant, lease->id});
  }
  // It may have been the last one that nobody could take it from.
  if (lease->move->residence == Residence::kResident)
    host_.Soften(*lease, turn);
}

void LeaseMover::Doom(Lease* lease, Turn& turn) {
  lease->move.Edit({}).mappings.clear();
  state_.moving.Edit({}).insert({lease->tenant, lease->id});
  index_.Touch(lease);
  if (lease->copy->copies > 0) HostDesk::CancelCopies(*lease, turn);
}

void LeaseMover::Forget(Lease* lease) {
  for (const Mapping& mapping : lease->move->mappings) {
    Session* const session = state_.sessions->Find(mapping.session);
    if (session != nullptr && session->leases.Edit({}).erase(lease->id) > 0)
      session->leased_bytes.Edit({}) -= lease->bytes;
  }
  state_.moving.Edit({}).erase({lease->tenant, lease->id});
}

void LeaseMover::StartEviction(Lease* lease, quota::Instant answer_by,
                               bool may_terminate, Turn& turn) {
  PublishMove(state_, "evict_started", *lease, {},
              NeedsCopy(state_, *lease) ? "" : "nothing to copy", turn);
  LeaseMove& move = lease->move.Edit({});
  move.residence = Residence::kEvicting;
  move.move_started = turn.now();
  move.may_terminate = may_terminate;
  state_.moving.Edit({}).insert({lease->tenant, lease->id});
  index_.Touch(lease);
  host_.BeginMove(lease);
  host_.CopyOut(lease, turn);
  for (Mapping& mapping : move.mappings) {
    mapping.overdue = false;
    if (!mapping.unmapped) AskToMove(lease, &mapping, answer_by, turn);
  }
  index_.Touch(lease);  // whoever was overdue is not any more
  TryEndEviction(lease, turn);
}

void LeaseMover::OnCopied(quota::LeaseId id, const absl::Status& status,
                          Turn& turn) {
  const auto found = state_.leases->find(id);
  if (found == state_.leases->end()) return;
  Lease* lease = found->second.get();
  if (!host_.OnCopied(lease, status, turn)) return;
  pools_.Filled(lease, turn);
  index_.Touch(lease);
  if (lease->life->doomed) {
    turn.Queue(CopiesOver{id});
  } else if (lease->move->residence == Residence::kResident) {
    host_.OnBacked(lease, turn);
  } else if (lease->move->residence == Residence::kEvicting) {
    if (lease->copy->moved.ok()) host_.MarkTrue(*lease);
    TryEndEviction(lease, turn);
  } else {
    TryEndRestore(lease, turn);
  }
}

void LeaseMover::AskToMove(Lease* lease, Mapping* mapping,
                           quota::Instant answer_by, Turn& turn) {
  Session* session = &state_.SessionAt(mapping->session);
  turn.Add(ExpectMoves{session->id, session->leases->size()});
  mapping->move = ++session->last_move.Edit({});
  mapping->asked = true;
  mapping->answer_by = answer_by;
  index_.Touch(lease);
  if (lease->move->residence != Residence::kEvicting)
    sessions_.SendSlabs(session, *lease, /*request_id=*/0, mapping->move, turn);
  sessions_.Say(session, MoveMessage(*lease, *mapping), turn);
}

// The client's answer to an Evict. One to anything else is a lie, or late.
void LeaseMover::OnUnmapped(Session* session, const v1::Unmapped& unmapped,
                            Turn& turn) {
  Lease* lease = FindLease(state_, *session, unmapped.lease_id());
  if (lease == nullptr || lease->move->residence != Residence::kEvicting)
    return;
  Mapping* mapping = lease->move.Edit({}).MappingOf(session->id);
  if (!mapping->asked || mapping->move != unmapped.move()) return;
  mapping->asked = false;
  mapping->answer_by = quota::Instant::Max();
  if (unmapped.has_error()) {
    if (mapping->refusals++ == 0) mapping->refused_since = turn.now();
    host_.Fail(lease, FromClient(unmapped.error()), turn);
  } else {
    mapping->unmapped = true;
    mapping->refusals = 0;
  }
  index_.Touch(lease);
  TryEndEviction(lease, turn);
}

void LeaseMover::TryEndEviction(Lease* lease, Turn& turn) {
  if (lease->copy->copies > 0 || lease->asked()) return;
  state_.moving.Edit({}).erase({lease->tenant, lease->id});
  if (!lease->copy->moved.ok()) {
    // Its contents are where they were; whether it is mapped, `unmapped` says.
    lease->move.Edit({}).residence = Residence::kResident;
    host_.LeaveAlone(lease, turn.now());
    PublishMove(state_, "evict_failed", *lease, {},
                lease->copy->moved.message(), turn);
    if (lease->move.Edit({}).ForgetOverdue()) host_.Soften(*lease, turn);
    index_.Touch(lease);
    for (const Mapping& mapping : lease->move->mappings) {
      if (mapping.refuses() &&
          !MayKill(*lease, state_.SessionAt(mapping.session))) {
        quota_.Tell(quota::HardChanged{lease->id, true}, turn);
      }
    }
    return turn.Queue(LeaseSettled{lease->id});
  }
  lease->move.Edit({}).residence = Residence::kEvicted;
  (void)lease->move.Edit({}).ForgetOverdue();
  lease->move.Edit({}).torn = false;
  index_.Touch(lease);
  PublishMove(state_, "evicted", *lease, turn.now() - lease->move->move_started,
              "", turn);
  // Before the engine may grant these bytes to another: see EndLease.
  pools_.GiveBack(lease, {}, turn);
  quota_.Tell(quota::Evicted{lease->id}, turn);
  turn.Queue(LeaseSettled{lease->id});
}

// A client that does not answer keeps its memory, which counts as hard: nobody
// can take it but by killing the process.
void LeaseMover::CheckOverdue(Turn& turn) {
  const quota::Instant now = turn.now();
  // Clients may have answered, and nobody could read it.
  if (turn.held_up()) {
    const quota::Instant anew = now + state_.options.planner.unmap_grace;
    for (const auto& [tenant, id] : *state_.moving) {
      Lease* lease = &state_.LeaseAt(id);
      for (Mapping& mapping : lease->move.Edit({}).mappings) {
        if (mapping.asked)
          mapping.answer_by = std::max(mapping.answer_by, anew);
      }
      index_.Touch(lease);
    }
  }
  for (int i = 0;
       i < kMostOverdueAtOnce && state_.reclaim->answers_due() <= now; ++i) {
    Lease* lease = &state_.LeaseAt(state_.reclaim->FirstAnswer());
    for (Mapping& mapping : lease->move.Edit({}).mappings) {
      if (!mapping.asked || mapping.overdue || now < mapping.answer_by)
        continue;
      mapping.overdue = true;
      debts_.Add(*lease, state_.SessionAt(mapping.session));
      const bool killed = MayKill(*lease, state_.SessionAt(mapping.session));
      PublishMove(state_, "client_overdue", *lease,
                  now - lease->move->move_started,
                  killed ? "it does not answer and may be killed for its memory"
                         : "it does not answer; its memory stays with it",
                  turn);
      if (!killed) quota_.Tell(quota::HardChanged{lease->id, true}, turn);
    }
    index_.Touch(lease);
  }
}

}  // namespace gmb::broker
