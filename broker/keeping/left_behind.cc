// Adoption's second step: which of the kept things is what, and what the
// journal says of them.
#include "broker/keeping/left_behind.h"

#include <fcntl.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "broker/keeping/journal_file.h"
#include "broker/keeping/record_reader.h"
#include "broker/keeping/remote_keeper.h"
#include "keeper/wire/messages.h"

namespace gmb::broker {
namespace {

std::optional<uint64_t> JournalOf(absl::string_view key) {
  uint64_t number = 0;
  if (!absl::ConsumePrefix(&key, keeper::kJournalKeys) ||
      !absl::SimpleAtoi(key, &number) || key != absl::StrCat(number)) {
    return std::nullopt;
  }
  return number;
}

absl::StatusOr<FoundRecords> ReadFrom(const SharedFd& journal,
                                      AdoptionMarks* marks) {
  base::UniqueFd fd(::fcntl(journal->get(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid())
    return absl::ErrnoToStatus(errno, "cannot duplicate the journal's fd");
  GMB_ASSIGN_OR_RETURN(const JournalFile file,
                       JournalFile::Adopt(std::move(fd)));
  GMB_ASSIGN_OR_RETURN(const JournalContents contents, file.Read());
  return ReadRecords(contents, marks);
}

// Tells an operator what to do about a journal that cannot be read.
absl::Status Unreadable(const absl::Status& why) {
  if (absl::IsFailedPrecondition(why)) return why;
  return absl::Status(
      why.code(),
      absl::StrCat(
          "what the last broker has left cannot be taken over: ", why.message(),
          "; `gmb keeper drop` gives it up, and with it the sessions "
          "and contents of its clients"));
}

// False: it is nothing that a broker puts.
bool Place(Kept* kept, LeftBehind* all, SharedFd* journal) {
  if (const auto slab = RemoteKeeper::SlabOf(kept->key); slab.has_value()) {
    if (kept->fds.size() != 1) return false;
    all->slabs.emplace(*slab, std::move(*kept));
    return true;
  }
  if (const auto id = KeptSessions::SessionOf(kept->key); id.has_value()) {
    absl::StatusOr<KeptSession> session = KeptSessions::Of(*kept);
    if (!session.ok()) return false;
    all->sessions.emplace(*id, *std::move(session));
    return true;
  }
  if (kept->key == kHostKey) {
    if (kept->fds.size() != 1) return false;
    all->host = kept->fds[0];
    return true;
  }
  const auto number = JournalOf(kept->key);
  if (!number.has_value() || kept->fds.size() != 1) return false;
  all->old_keys.push_back(kept->key);
  if (*journal == nullptr || *number >= all->last_journal) {
    *journal = kept->fds[0];
    all->last_journal = *number;
  }
  return true;
}

// Sessions without a connection have ended, or never could be kept; and with
// them what nobody else has. Its slabs are not to be taken over by a device.
void DropEnded(LeftBehind* left) {
  std::vector<SessionRecord>& sessions = left->records.sessions;
  const auto has_ended = [&](uint64_t session) {
    return left->sessions.count(session) == 0;
  };
  for (const SessionRecord& session : sessions) {
    if (!has_ended(session.id)) continue;
    left->set_aside.push_back(
        absl::StrCat("session ", session.id, ": its connection is not kept"));
  }
  std::erase_if(sessions, [&](const SessionRecord& session) {
    return has_ended(session.id);
  });
  std::erase_if(left->records.leases, [&](const LeaseRecord& lease) {
    const bool stays = lease.shared && lease.keep && !lease.dropped;
    return !stays &&
           absl::c_all_of(lease.mappings, [&](const MappingRecord& mapping) {
             return has_ended(mapping.session);
           });
  });
}

constexpr absl::string_view kDiedOfIt =
    "brokers have died while they took it over";

void Refuse(uint64_t session, const std::string& tenant, absl::string_view why,
            LeftBehind* left) {
  left->refused.try_emplace(
      session,
      LeftBehind::Refused{
          .tenant = tenant,
          .why = absl::StrCat(why, ": its process is to connect again")});
}

void RefuseSessionsOf(const LeaseRecord& lease, absl::string_view why,
                      LeftBehind* left) {
  left->set_aside.push_back(absl::StrCat("lease ", lease.id, " of tenant ",
                                         lease.tenant, ": ", why,
                                         "; its sessions end"));
  for (const MappingRecord& mapping : lease.mappings) {
    Refuse(mapping.session, lease.tenant,
           absl::StrCat("its lease ", lease.id, ": ", why), left);
  }
}

void ForgetRefused(LeftBehind* left) {
  std::erase_if(left->records.sessions, [&](const SessionRecord& session) {
    return left->refused.count(session.id) > 0;
  });
}

// Refuses the records that brokers have died of while they took them over.
void RefusePoison(const AdoptionMarks& marks, LeftBehind* left) {
  constexpr auto kTaking = AdoptionMarks::Step::kTaking;
  std::erase_if(left->records.leases, [&](const LeaseRecord& lease) {
    if (!marks.IsPoison(kTaking, {RecordKind::kLease, lease.id})) return false;
    RefuseSessionsOf(lease, kDiedOfIt, left);
    return true;
  });
  for (const SessionRecord& session : left->records.sessions) {
    if (!marks.IsPoison(kTaking, {RecordKind::kSession, session.id})) continue;
    left->set_aside.push_back(absl::StrCat("session ", session.id,
                                           " of tenant ", session.tenant, ": ",
                                           kDiedOfIt));
    Refuse(session.id, session.tenant, kDiedOfIt, left);
  }
  ForgetRefused(left);
}

// Its next bytes come from other pages.
void PunchOut(const LeaseRecord& lease, const SharedFd& host) {
  if (host == nullptr) return;
  for (const device::HostExtent& extent : lease.room) {
    // It fails where there is no such room; nobody reads it then.
    (void)::fallocate(host->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      static_cast<off_t>(extent.offset),
                      static_cast<off_t>(extent.bytes));
  }
}

}  // namespace

void RefuseDamaged(uint64_t id, LeftBehind* left) {
  std::erase_if(left->records.leases, [&](const LeaseRecord& lease) {
    if (lease.id != id) return false;
    RefuseSessionsOf(lease,
                     "a page of memory was broken, and ended the broker that "
                     "copied it",
                     left);
    PunchOut(lease, left->host);
    return true;
  });
  ForgetRefused(left);
}

std::string JournalKey(uint64_t number) {
  return absl::StrCat(keeper::kJournalKeys, number);
}

absl::StatusOr<LeftBehind> Sort(std::vector<Kept> all, AdoptionMarks* marks) {
  LeftBehind left;
  SharedFd journal;
  for (Kept& kept : all) {
    const std::string key = kept.key;
    if (Place(&kept, &left, &journal)) continue;
    left.set_aside.push_back(
        absl::StrCat("the keeper's ", key, ": it is nothing of a broker's"));
    left.old_keys.push_back(key);
  }
  if (journal == nullptr) {
    if (left.empty()) return left;
    return Unreadable(absl::DataLossError("there is no journal"));
  }
  absl::StatusOr<FoundRecords> found = ReadFrom(journal, marks);
  if (!found.ok()) return Unreadable(found.status());
  left.records = std::move(found->records);
  for (std::string& what : found->set_aside)
    left.set_aside.push_back(std::move(what));
  if (marks != nullptr) RefusePoison(*marks, &left);
  DropEnded(&left);
  return left;
}

}  // namespace gmb::broker
