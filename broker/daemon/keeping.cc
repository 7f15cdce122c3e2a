// A broker that outlives its process: what it leaves, and what it finds.
#include "broker/daemon/keeping.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/log/logging.h"
#include "broker/machine/wire_form.h"
#include "ipc/gate_page.h"

namespace gmb::broker {
namespace {

// Of each answer, and at the start for one that listens. A broker that asks a
// keeper that hangs waits so long, once.
constexpr absl::Duration kTimeout = absl::Seconds(2);

void WarnOfNotRemoved(absl::string_view key, const absl::Status& why) {
  LogEvent(LogLevel::kWarning, "not_removed",
           {{"message", absl::StrCat(key, ": ", why.message())}});
}

}  // namespace

absl::StatusOr<base::UniqueFd> Keeping::Duplicate(int fd) {
  base::UniqueFd duplicate(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (duplicate.valid()) return duplicate;
  return absl::ErrnoToStatus(errno, "cannot duplicate a kept fd");
}

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
  keeping->greeted_ = deps.clock->WallTime();
  GMB_ASSIGN_OR_RETURN(std::vector<Kept> all, keeping->client_->Adopt());
  keeping->BeginMarks(&all);
  const uint64_t damaged = CopyMark::ReadFrom(TakeOut(CopyMark::kKey, &all));
  GMB_ASSIGN_OR_RETURN(keeping->left_,
                       Sort(std::move(all), keeping->marks_.get()));
  if (damaged != 0) RefuseDamaged(damaged, &keeping->left_);
  keeping->BeginCopyMark();
  for (const std::string& what : keeping->left_.set_aside)
    LogEvent(LogLevel::kWarning, "record_set_aside", {{"message", what}});
  GMB_RETURN_IF_ERROR(keeping->AdoptSlabs());
  return keeping;
}

KeptSlabs Keeping::SlabsByDevice() const {
  KeptSlabs by_device;
  for (const LeaseRecord& lease : left_.records.leases) {
    std::vector<SlabRecord>& its = by_device[lease.device].slabs;
    its.insert(its.end(), lease.slabs.begin(), lease.slabs.end());
  }
  // Where nobody is left, what is free now is the truth.
  if (left_.records.sessions.empty() && left_.records.leases.empty())
    return by_device;
  for (const PoolRecord& pool : left_.records.pools)
    by_device[pool.device].baseline_bytes = pool.baseline_bytes;
  return by_device;
}

absl::StatusOr<HostMemory> Keeping::HostMemoryFor(HostMemory asked) const {
  if (left_.host == nullptr) return asked;
  struct stat info {};
  if (::fstat(left_.host->get(), &info) != 0)
    return absl::ErrnoToStatus(errno, "cannot look at the kept host pool");
  const auto size = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
  if (size != asked.bytes && !asked.by_default) {
    const bool used =
        std::any_of(left_.records.leases.begin(), left_.records.leases.end(),
                    [](const LeaseRecord& lease) { return lease.has_room; });
    if (!used) return asked;
    LogEvent(LogLevel::kWarning, "host_pool_kept",
             {{"bytes", size},
              {"message",
               "the host pool has contents, and keeps the size that it had: "
               "start the broker again without clients for the new one"}});
  }
  GMB_ASSIGN_OR_RETURN(base::UniqueFd fd, Duplicate(left_.host->get()));
  asked.kept = std::move(fd);
  asked.bytes = size;
  if (asked.by_default) asked.note = "as the last broker left it";
  return asked;
}

absl::Status Keeping::BeginJournal(uint64_t max_handles,
                                   uint64_t max_sessions) {
  // The devices have imported what they can.
  slabs_.SetOnGet(nullptr);
  LetGo();
  GMB_ASSIGN_OR_RETURN(
      JournalFile file,
      JournalFile::Create(RecordJournal::SlotsFor(max_handles, max_sessions)));
  GMB_ASSIGN_OR_RETURN(base::UniqueFd fd, Duplicate(file.fd()));
  GMB_ASSIGN_OR_RETURN(journal_,
                       RecordJournal::Begin(std::move(file), left_.records));
  journal_->AwaitAdoption();
  const Kept entry{.key = JournalKey(left_.last_journal + 1),
                   .fds = {Share(std::move(fd))}};
  const absl::Status put = client_->Put(entry);
  const bool full = absl::IsResourceExhausted(put);
  if (!full) GMB_RETURN_IF_ERROR(put);
  for (const std::string& key : left_.old_keys) Remove(key);
  // A keeper that is full has room for one of them alone. A death between the
  // two loses all; not to start at all would too.
  return full ? client_->Put(entry) : absl::OkStatus();
}

absl::Status Keeping::KeepHostMemory(int fd) {
  if (left_.host != nullptr) {
    // The same memory, or one that nobody needs.
    struct stat kept {};
    struct stat ours {};
    if (fd >= 0 && ::fstat(left_.host->get(), &kept) == 0 &&
        ::fstat(fd, &ours) == 0 && kept.st_dev == ours.st_dev &&
        kept.st_ino == ours.st_ino) {
      return absl::OkStatus();
    }
    left_.host = nullptr;
    Remove(std::string(kHostKey));
  }
  if (fd < 0) return absl::OkStatus();
  GMB_ASSIGN_OR_RETURN(base::UniqueFd duplicate, Duplicate(fd));
  return client_->Put(
      {.key = std::string(kHostKey), .fds = {Share(std::move(duplicate))}});
}

void Keeping::Remove(const std::string& key) {
  const absl::Status removed = client_->Remove(key);
  if (removed.ok() || absl::IsNotFound(removed)) return;
  WarnOfNotRemoved(key, removed);
}

void Keeping::KeepSession(uint64_t session, int socket, const SharedFd& pidfd,
                          int gate_page) {
  const absl::Status kept = sessions_.Keep(session, socket, pidfd, gate_page);
  if (kept.ok()) return;
  v1::Event event;
  event.set_kind("session_not_kept");
  event.set_session_id(session);
  event.set_message(kept.message().data(), kept.message().size());
  Publish(std::move(event));
}

void Keeping::EndSession(uint64_t session) {
  const absl::Status ended = sessions_.End(session);
  if (!ended.ok()) WarnOfNotRemoved(KeptSessions::KeyOf(session), ended);
}

uint64_t Keeping::left_out() const {
  return journal_->left_out() + slabs_.not_kept() + client_->refused();
}

void Keeping::Watch() {
  const auto say = [](absl::string_view what) {
    v1::Event event;
    event.set_message(what.data(), what.size());
    return event;
  };
  watch_ = std::make_unique<KeeperWatch>(
      client_.get(),
      KeeperWatch::Calls{
          .lost =
              [this, say] {
                const std::string why = absl::StrCat(
                    client_->displaced()
                        ? "it does not listen at its path any more, since the "
                          "directory was removed or made anew, and the next "
                          "broker would not find it: start one there"
                        : "it is dead, does not answer, or has no room for the "
                          "journal",
                    "; should the broker die now, all ends with it");
                SetProblem(why);
                v1::Event event = say(why);
                event.set_kind("keeper_lost");
                Publish(std::move(event));
              },
          .found =
              [this, say] {
                SetProblem("");
                const uint64_t refused = client_->refused();
                v1::Event event =
                    refused == 0
                        ? say("it has everything again")
                        : say(absl::StrCat(
                              "it has what it has room for: ", refused,
                              " entries end with this broker; raise its limit "
                              "on open files"));
                event.set_kind("keeper_found");
                Publish(std::move(event));
              },
          .look = [this] { ReportLeftOut(); }});
}

void Keeping::ReportLeftOut() {
  const uint64_t count = left_out();
  if (count > 0 && !said_left_out_) {
    v1::Event event;
    event.set_kind("not_kept");
    event.set_message(absl::StrCat(
        count,
        " sessions, leases or slabs are not kept, and sessions that have such "
        "a lease end with this broker: the journal or the keeper is full: "
        "raise max_handles or max_sessions"));
    Publish(std::move(event));
  }
  said_left_out_ = count > 0;
}

void Keeping::SetProblem(const std::string& problem) {
  base::MutexLock lock(&problem_mu_);
  problem_ = problem;
}

std::string Keeping::problem() const {
  base::MutexLock lock(&problem_mu_);
  return problem_;
}

void Keeping::Publish(v1::Event event) const {
  *event.mutable_at() = ToProto(deps_.clock->WallTime());
  deps_.events->Publish(std::move(event));
  deps_.events->Wake();
}

void Keeping::Done() {
  watch_.reset();
  const absl::Status done = client_->Done();
  if (done.ok()) return;
  LogEvent(LogLevel::kWarning, "keeper_not_told",
           {{"message", done.message()}});
}

}  // namespace gmb::broker
