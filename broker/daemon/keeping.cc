// A broker that outlives its process: what it leaves, and what it finds.
#include "broker/daemon/keeping.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/daemon/kept_entry.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

// Of each answer, and at the start for one that listens. A broker that asks a
// keeper that hangs waits so long, once.
constexpr absl::Duration kTimeout = absl::Seconds(2);

// Takes what is kept under that key out of `all`; null: nothing is.
SharedFd TakeOut(absl::string_view key, std::vector<Kept>* all) {
  SharedFd last;
  std::erase_if(*all, [&](const Kept& kept) {
    if (kept.key != key) return false;
    if (kept.fds.size() == 1) last = kept.fds[0];
    return true;
  });
  return last;
}

// The same memory.
bool IsSame(int one, int other) {
  struct stat a {};
  struct stat b {};
  return one >= 0 && other >= 0 && ::fstat(one, &a) == 0 &&
         ::fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Keeping>> Keeping::Open(
    const std::string& socket, const Deps& deps) {
  absl::StatusOr<std::unique_ptr<KeeperClient>> client =
      KeeperClient::Connect({.socket = socket,
                             .disposer = deps.disposer,
                             .timeout = kTimeout,
                             .wait_for_listener = kTimeout});
  if (!client.ok()) {
    return absl::Status(client.status().code(),
                        absl::StrCat("keeper: ", client.status().message()));
  }
  std::unique_ptr<Keeping> keeping(new Keeping(deps, *std::move(client)));
  const absl::Time greeted = deps.clock->WallTime();
  GMB_ASSIGN_OR_RETURN(std::vector<Kept> all, keeping->client_->Adopt());
  keeping->in_hand_.Begin(TakeOut(AdoptionMarks::kKey, &all));
  const uint64_t damaged = CopyMark::ReadFrom(TakeOut(CopyMark::kKey, &all));
  GMB_ASSIGN_OR_RETURN(LeftBehind left,
                       Sort(std::move(all), keeping->in_hand_.marks()));
  if (damaged != 0) RefuseDamaged(damaged, &left);
  for (const std::string& what : left.set_aside)
    LogEvent(LogLevel::kWarning, "record_set_aside", {{"message", what}});
  keeping->inheritance_ = std::make_unique<Inheritance>(
      Inheritance::Deps{.client = keeping->client_.get(),
                        .sessions = &keeping->sessions_,
                        .in_hand = &keeping->in_hand_,
                        .clock = deps.clock},
      std::move(left), greeted);
  GMB_RETURN_IF_ERROR(keeping->inheritance_->AdoptSlabs(&keeping->slabs_));
  return keeping;
}

// The last broker's mark goes once no journal has the lease that it names: its
// room in the host pool is empty by then, and the journal before this one says
// that its contents are there.
void Keeping::BeginCopyMark() {
  RemoveKept(std::string(CopyMark::kKey), client_.get());
  absl::StatusOr<std::unique_ptr<CopyMark>> mark = CopyMark::Create();
  absl::Status put = mark.status();
  if (mark.ok()) put = PutFd(CopyMark::kKey, (*mark)->fd(), client_.get());
  // Then the next broker copies what has ended this one, and ends too.
  if (!put.ok())
    return LogEvent(LogLevel::kWarning, "not_kept",
                    {{"message", put.message()}});
  copy_mark_ = *std::move(mark);
  memory_errors_.emplace(copy_mark_.get());
}

absl::Status Keeping::BeginJournal(uint64_t max_handles,
                                   uint64_t max_sessions) {
  // The devices have imported what they can.
  slabs_.SetOnGet(nullptr);
  LetGo();
  GMB_ASSIGN_OR_RETURN(
      JournalFile file,
      JournalFile::Create(RecordJournal::SlotsFor(max_handles, max_sessions)));
  GMB_ASSIGN_OR_RETURN(base::UniqueFd fd, DuplicateKept(file.fd()));
  const LeftBehind& left = inheritance_->left();
  GMB_ASSIGN_OR_RETURN(journal_,
                       RecordJournal::Begin(std::move(file), left.records));
  journal_->AwaitAdoption();
  const Kept entry{.key = JournalKey(left.last_journal + 1),
                   .fds = {Share(std::move(fd))}};
  const absl::Status put = client_->Put(entry);
  const bool full = absl::IsResourceExhausted(put);
  if (!full) GMB_RETURN_IF_ERROR(put);
  for (const std::string& key : left.old_keys) RemoveKept(key, client_.get());
  // A keeper that is full has room for one of them alone. A death between the
  // two loses all; not to start at all would too.
  if (full) GMB_RETURN_IF_ERROR(client_->Put(entry));
  BeginCopyMark();
  return absl::OkStatus();
}

absl::Status Keeping::KeepHostMemory(int fd) {
  if (const SharedFd left = inheritance_->TakeHostMemory(); left != nullptr) {
    if (IsSame(left->get(), fd)) return absl::OkStatus();
    // Nobody needs it.
    RemoveKept(std::string(kHostKey), client_.get());
  }
  return fd < 0 ? absl::OkStatus() : PutFd(kHostKey, fd, client_.get());
}

void Keeping::KeepSession(uint64_t session, int socket, const SharedFd& pidfd,
                          int gate_page) {
  const absl::Status kept = sessions_.Keep(session, socket, pidfd, gate_page);
  if (!kept.ok()) news_.SessionNotKept(session, kept);
}

void Keeping::EndSession(uint64_t session) {
  const absl::Status ended = sessions_.End(session);
  if (!ended.ok()) WarnOfNotRemoved(KeptSessions::KeyOf(session), ended);
}

uint64_t Keeping::left_out() const {
  return journal_->left_out() + slabs_.not_kept() + client_->refused();
}

void Keeping::Watch() {
  watch_ = std::make_unique<KeeperWatch>(
      client_.get(),
      KeeperWatch::Calls{.lost = [this] { news_.Lost(); },
                         .found = [this] { news_.Found(); },
                         .look = [this] { news_.LeftOut(left_out()); }});
}

void Keeping::Done() {
  watch_.reset();
  const absl::Status done = client_->Done();
  if (done.ok()) return;
  LogEvent(LogLevel::kWarning, "keeper_not_told",
           {{"message", done.message()}});
}

}  // namespace gmb::broker
