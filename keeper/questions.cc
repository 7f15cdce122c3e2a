// The questions of a broker to its keeper: put, remove, fetch; and those of
// commands.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ipc/pidfd.h"
#include "keeper/server.h"

namespace gmb::keeper {
namespace {

// The same memory, and an fd that no store can be made through. Of memory
// alone: to open anything else could have effects, and take long.
absl::StatusOr<base::UniqueFd> OpenToRead(int fd) {
  if (::fcntl(fd, F_GET_SEALS) < 0)
    return absl::InvalidArgumentError("what is kept as a journal is no memory");
  base::UniqueFd to_read(::open(absl::StrCat("/proc/self/fd/", fd).c_str(),
                                O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (to_read.valid()) return to_read;
  return absl::ErrnoToStatus(errno, "cannot open the journal once more");
}

// Of a memory file; anything else has none, and is not asked.
uint64_t MemoryOf(int fd) {
  constexpr uint64_t kBlock = 512;  // whatever the file's own is
  struct stat info {};
  if (::fcntl(fd, F_GET_SEALS) < 0 || ::fstat(fd, &info) != 0) return 0;
  return static_cast<uint64_t>(info.st_blocks) * kBlock;
}

}  // namespace

absl::Status Server::OnQuestion(uint64_t id, ipc::Packet packet) {
  Connection& connection = connections_.at(id);
  absl::StatusOr<Frame> frame = Decode(packet.bytes);
  const bool is_put = frame.ok() && frame->kind == Kind::kPut &&
                      connection.state == Connection::State::kBroker;
  if (is_put) return OnPut(&connection, *frame, std::move(packet.fds));
  if (!packet.fds.empty()) {
    closer_.Close(std::move(packet.fds), "unasked");
    return absl::InvalidArgumentError("only a Put has fds");
  }
  if (!frame.ok()) return frame.status();
  const bool is_broker = connection.state == Connection::State::kBroker;
  const bool is_command = connection.state == Connection::State::kCommand;
  if (frame->kind == Kind::kStatus && (is_broker || is_command)) {
    return Answer(&connection, Kind::kStatusIs, frame->call,
                  Encode(MakeStatus()));
  }
  if (frame->kind == Kind::kDrop && is_command)
    return OnDrop(&connection, *frame);
  if (frame->kind == Kind::kLook && is_command)
    return OnLook(&connection, *frame);
  if (frame->kind == Kind::kCount && is_command) {
    return Answer(&connection, Kind::kCountIs, frame->call, Encode(Count()));
  }
  if (frame->kind == Kind::kHandOver &&
      connection.state == Connection::State::kSuccessor) {
    return OnHandOver(id, *frame);
  }
  if (is_broker) {
    if (frame->kind == Kind::kRemove) return OnRemove(&connection, *frame);
    if (frame->kind == Kind::kFetch) return OnFetch(&connection, *frame);
    if (frame->kind == Kind::kDone) return OnDone(id, *frame);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a question that this peer may not ask: ",
                   static_cast<int>(frame->kind)));
}

absl::Status Server::OnPut(Connection* connection, const Frame& frame,
                           std::vector<base::UniqueFd> fds) {
  absl::StatusOr<EntryHead> head = DecodeEntry(frame.body);
  absl::Status may = head.status();
  if (may.ok()) may = shelf_.Check(*head, fds.size(), SlowToClose());
  if (may.ok() && head->peer.has_value() &&
      !ipc::IsPidfd(fds[*head->peer].get())) {
    may = absl::InvalidArgumentError(
        absl::StrCat("the peer of an entry is no pidfd: ", head->key));
  }
  if (!may.ok()) {
    closer_.Close(std::move(fds), head.ok() ? head->key : "refused");
    return Refuse(connection, frame.call, may);
  }
  const KeptEntry& kept = shelf_.Add({*std::move(head), std::move(fds)});
  if (kept.head.peer.has_value()) {
    const int pidfd = kept.fds[*kept.head.peer].get();
    const absl::Status watched =
        epoll_.Add(pidfd, {ipc::EpollTag::kPidfd, kept.head.order}, EPOLLIN);
    if (!watched.ok()) {
      Discard(shelf_.Take(std::string(kept.head.key)).value());
      return Refuse(connection, frame.call, watched);
    }
    living_.emplace(kept.head.order, pidfd);
  }
  return Answer(connection, Kind::kOk, frame.call, "");
}

// Fds that are still open though nobody has them any more, beyond those that
// there is room for beside the shelf's.
size_t Server::SlowToClose() const {
  const size_t waiting = disposer_->waiting();
  return waiting - std::min(waiting, ipc::FdDisposer::kCrowded);
}

absl::Status Server::OnRemove(Connection* connection, const Frame& frame) {
  GMB_ASSIGN_OR_RETURN(const std::string key, DecodeKey(frame.body));
  std::optional<KeptEntry> entry = shelf_.Take(key);
  if (!entry.has_value()) {
    return Refuse(connection, frame.call,
                  absl::NotFoundError(
                      absl::StrCat("nothing is kept under this name: ", key)));
  }
  Discard(*std::move(entry));
  return Answer(connection, Kind::kOk, frame.call, "");
}

absl::Status Server::OnFetch(Connection* connection, const Frame& frame) {
  GMB_ASSIGN_OR_RETURN(const uint64_t after, DecodeAfter(frame.body));
  const Shelf::Next next = shelf_.After(after);
  Page page;
  page.more = next.more;
  std::vector<int> fds;
  for (const KeptEntry* entry : next.entries) {
    page.entries.push_back(entry->head);
    for (const base::UniqueFd& fd : entry->fds) fds.push_back(fd.get());
  }
  const absl::Status sent =
      Answer(connection, Kind::kPage, frame.call, Encode(page), fds);
  // Too many of this user's fds lie unread: it is asked again later.
  if (absl::IsResourceExhausted(sent))
    return Refuse(connection, frame.call, sent);
  return sent;
}

absl::Status Server::OnDone(uint64_t id, const Frame& frame) {
  GiveAllBack("the broker is done");
  done_ = true;
  const absl::Status answered =
      Answer(&connections_.at(id), Kind::kOk, frame.call, "");
  // It puts nothing more: another one may be served from now on.
  connections_.at(id).state = Connection::State::kCommand;
  ServeWaiting();
  return answered;
}

absl::Status Server::OnDrop(Connection* connection, const Frame& frame) {
  if (holder_.has_value() && !holder_->dead) {
    return Refuse(connection, frame.call,
                  absl::FailedPreconditionError(absl::StrCat(
                      "the broker of this keeper lives: ",
                      NameOf(holder_->process), ": stop it first")));
  }
  const KeeperStatus before = MakeStatus();
  GiveAllBack("a command says so");
  done_ = true;
  return Answer(connection, Kind::kStatusIs, frame.call, Encode(before));
}

// Also while its broker lives and writes it: the next one is to be tried on it.
absl::Status Server::OnLook(Connection* connection, const Frame& frame) {
  const KeptEntry* const journal = shelf_.Newest(kJournalKeys);
  if (journal == nullptr) {
    return Refuse(connection, frame.call,
                  absl::NotFoundError("no journal is kept here"));
  }
  const absl::StatusOr<base::UniqueFd> to_read =
      OpenToRead(journal->fds[0].get());
  if (!to_read.ok()) return Refuse(connection, frame.call, to_read.status());
  return Answer(connection, Kind::kOk, frame.call, "", {to_read->get()});
}

void Server::Discard(KeptEntry entry) {
  const auto living = living_.find(entry.head.order);
  if (living != living_.end()) {
    // Not by its close: the broker's copy would keep it in the set.
    epoll_.Remove(living->second);
    living_.erase(living);
  }
  closer_.Close(std::move(entry.fds), entry.head.key);
}

KeptCount Server::Count() const {
  KeptCount count{.living_sessions = living_.size()};
  for (const auto& [order, entry] : shelf_.all()) {
    count.sessions += entry.head.peer.has_value() ? 1 : 0;
    for (const base::UniqueFd& fd : entry.fds)
      count.memory_bytes += MemoryOf(fd.get());
  }
  return count;
}

KeeperStatus Server::MakeStatus() const {
  KeeperStatus status;
  status.pid = ::getpid();
  status.entries = shelf_.entries();
  status.fds = shelf_.fds();
  status.max_entries = shelf_.limits().entries;
  status.max_fds = shelf_.limits().fds;
  status.living_peers = living_.size();
  if (holder_.has_value()) {
    status.broker_pid = holder_->process.pid;
    status.broker = holder_->dead        ? KeeperStatus::Broker::kDead
                    : holder_->connected ? KeeperStatus::Broker::kServed
                                         : KeeperStatus::Broker::kHungUp;
  }
  if (const auto at = GivesBack(); at.has_value()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        *at - std::chrono::steady_clock::now());
    status.gives_back_in_ms =
        static_cast<uint64_t>(std::max<int64_t>(0, left.count()));
  }
  return status;
}

}  // namespace gmb::keeper
