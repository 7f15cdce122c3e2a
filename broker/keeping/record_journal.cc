// The machine's promises on their way into the journal.
#include "broker/keeping/record_journal.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/keeping/record_form.h"

namespace gmb::broker {
namespace {

// Of the head, and of pools.
constexpr uint64_t kOwnSlots = 64;
constexpr uint64_t kSlotsPerHandle = 2;
constexpr uint64_t kSlotsPerSession = 8;

RecordChanges AllOf(const Records& records) {
  return {.head = records.head,
          .pools = records.pools,
          .sessions = records.sessions,
          .ended_sessions = {},
          .leases = records.leases,
          .ended_leases = {}};
}

std::vector<uint64_t> UsersOf(const LeaseRecord& lease) {
  std::vector<uint64_t> users;
  for (const MappingRecord& mapping : lease.mappings)
    users.push_back(mapping.session);
  return users;
}

}  // namespace

uint32_t RecordJournal::SlotsFor(uint64_t max_handles, uint64_t max_sessions) {
  const uint64_t handles = std::min<uint64_t>(max_handles, kMostJournalSlots);
  const uint64_t sessions = std::min<uint64_t>(max_sessions, kMostJournalSlots);
  return static_cast<uint32_t>(std::min<uint64_t>(
      kOwnSlots + handles * kSlotsPerHandle + sessions * kSlotsPerSession,
      kMostJournalSlots));
}

RecordJournal::RecordJournal(JournalFile file, const Records& taken_over,
                             const JournalContents& empty,
                             std::function<void()> stored)
    : file_(std::move(file)),
      writer_(file_.memory(), empty, std::move(stored)),
      generation_(taken_over.head.generation) {}

absl::StatusOr<std::unique_ptr<RecordJournal>> RecordJournal::Begin(
    JournalFile file, const Records& taken_over, std::function<void()> stored) {
  GMB_ASSIGN_OR_RETURN(const JournalContents empty, file.ReadAtBegin());
  if (empty.committed != 0)
    return absl::FailedPreconditionError("this journal is another broker's");
  std::unique_ptr<RecordJournal> journal(
      new RecordJournal(std::move(file), taken_over, empty, std::move(stored)));
  // The head is first, so that it always has its slot.
  journal->Commit(AllOf(taken_over));
  if (journal->left_out() == 0) return journal;
  return absl::ResourceExhaustedError(absl::StrCat(
      "the journal has no room for what is taken over: ", journal->left_out(),
      " sessions and leases do not fit; raise max_handles or max_sessions"));
}

void RecordJournal::Commit(const RecordChanges& changes) {
  if (awaits_adoption_) {
    if (!changes.head.has_value() || changes.head->generation <= generation_)
      return;
    awaits_adoption_ = false;
    DropAllBut(changes);
  }
  if (changes.head.has_value())
    Write({RecordKind::kHead, 0}, EncodeRecord(*changes.head));
  for (const uint64_t id : changes.ended_sessions)
    Remove({RecordKind::kSession, id});
  for (const uint64_t id : changes.ended_leases)
    Remove({RecordKind::kLease, id});
  for (const PoolRecord& pool : changes.pools)
    Write({RecordKind::kPool, NumberOf(pool.device)}, EncodeRecord(pool));
  for (const SessionRecord& session : changes.sessions)
    Write({RecordKind::kSession, session.id}, EncodeRecord(session));
  for (const LeaseRecord& lease : changes.leases)
    Write({RecordKind::kLease, lease.id}, EncodeRecord(lease), UsersOf(lease));
  for (const RecordKind kind :
       {RecordKind::kPool, RecordKind::kLease, RecordKind::kSession})
    RetryLeftOut(kind);
  writer_.Commit();
  left_out_count_.store(left_out_.size(), std::memory_order_relaxed);
}

void RecordJournal::DropAllBut(const RecordChanges& changes) {
  absl::flat_hash_set<RecordKey> named;
  for (const SessionRecord& session : changes.sessions)
    named.insert({RecordKind::kSession, session.id});
  for (const LeaseRecord& lease : changes.leases)
    named.insert({RecordKind::kLease, lease.id});
  std::vector<RecordKey> gone;
  for (const auto& [key, record] : written_) {
    const bool goes_on = key.kind == RecordKind::kHead ||
                         key.kind == RecordKind::kPool || named.contains(key);
    if (!goes_on) gone.push_back(key);
  }
  for (const RecordKey& key : gone) Remove(key);
}

uint64_t RecordJournal::NumberOf(const std::string& device) {
  return pools_.try_emplace(device, pools_.size() + 1).first->second;
}

void RecordJournal::Write(const RecordKey& key, std::string bytes,
                          std::vector<uint64_t> users) {
  Written& record = written_[key];
  if (!record.slots.empty() && record.bytes == bytes) return;
  if (left_out_.contains(key)) OnFits(key, record);  // it may have other users
  record.users = std::move(users);
  Fit(key, &record, std::move(bytes));
}

bool RecordJournal::HasRoom(const RecordKey& key, size_t more) const {
  return more <= writer_.free_slots() &&
         !(key.kind == RecordKind::kSession && short_of_.contains(key.id));
}

void RecordJournal::LeaveOut(const RecordKey& key, Written* record) {
  Free(record, 0);
  if (!left_out_.insert(key).second) return;
  for (const uint64_t user : record->users) {
    if (++short_of_[user] > 1) continue;
    const auto session = written_.find({RecordKind::kSession, user});
    if (session != written_.end()) LeaveOut(session->first, &session->second);
  }
}

// Or has ended. Its sessions are tried again at the end of the commit.
void RecordJournal::OnFits(const RecordKey& key, const Written& record) {
  if (left_out_.erase(key) == 0) return;
  for (const uint64_t user : record.users) {
    const auto count = short_of_.find(user);
    if (--count->second == 0) short_of_.erase(count);
  }
}

void RecordJournal::Fit(const RecordKey& key, Written* record,
                        std::string bytes) {
  const size_t had = record->slots.size();
  const size_t parts = PartsOf(bytes.size());
  if (parts > kMostParts || !HasRoom(key, parts > had ? parts - had : 0)) {
    // The record of before is no longer true.
    record->bytes = std::move(bytes);
    return LeaveOut(key, record);
  }
  Free(record, parts);
  // Enough are free: it was looked for.
  while (record->slots.size() < parts)
    record->slots.push_back(*writer_.NewSlot());
  for (size_t part = 0; part < parts; ++part) {
    const std::string contents = EncodePart(key.id, bytes, part);
    if (part < had && contents == EncodePart(key.id, record->bytes, part))
      continue;
    // It fails for what is no slot's contents alone.
    (void)writer_.Write(record->slots[part], static_cast<uint16_t>(key.kind),
                        contents);
  }
  record->bytes = std::move(bytes);
  OnFits(key, *record);
}

void RecordJournal::Remove(const RecordKey& key) {
  const auto found = written_.find(key);
  if (found == written_.end()) return;
  Free(&found->second, 0);
  OnFits(key, found->second);
  written_.erase(found);
}

void RecordJournal::RetryLeftOut(RecordKind kind) {
  if (left_out_.empty() || writer_.free_slots() == 0) return;
  const std::vector<RecordKey> keys(left_out_.begin(), left_out_.end());
  for (const RecordKey& key : keys) {
    if (writer_.free_slots() == 0) return;
    if (key.kind != kind) continue;
    Written& record = written_[key];
    Fit(key, &record, record.bytes);
  }
}

void RecordJournal::Free(Written* record, size_t from) {
  while (record->slots.size() > from) {
    writer_.Free(record->slots.back());
    record->slots.pop_back();
  }
}

}  // namespace gmb::broker
