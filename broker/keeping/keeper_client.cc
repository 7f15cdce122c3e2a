// Each fd that has to outlive the broker, on its way to the keeper and back.
#include "broker/keeping/keeper_client.h"

#include <sys/stat.h>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/keeping/fetched.h"
#include "broker/keeping/kept_sessions.h"
#include "broker/keeping/remote_keeper.h"
#include "keeper/wire/messages.h"

namespace gmb::broker {
namespace {

using keeper::Kind;

keeper::LinkOptions LinkOptionsOf(const KeeperClientOptions& options) {
  return {.socket = options.socket,
          .role = keeper::Role::kBroker,
          .timeout = options.timeout,
          .wait_for_last = options.wait_for_last};
}

std::vector<int> NumbersOf(const Kept& kept) {
  std::vector<int> numbers;
  for (const SharedFd& fd : kept.fds) numbers.push_back(fd->get());
  return numbers;
}

absl::Status Check(const Kept& kept) {
  const size_t fds = kept.fds.size();
  if (keeper::IsKey(kept.key) && fds > 0 && fds <= keeper::kMaxEntryFds &&
      kept.record.size() <= keeper::kMaxRecordBytes &&
      (!kept.peer.has_value() || *kept.peer < fds)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("nothing that a keeper takes: ", fds, " fds, a record of ",
                   kept.record.size(), " bytes, under the name ", kept.key));
}

absl::Status PutInto(keeper::KeeperLink* link, const Kept& kept) {
  const keeper::EntryHead head{.key = kept.key,
                               .record = kept.record,
                               .fds = static_cast<uint8_t>(kept.fds.size()),
                               .peer = kept.peer};
  return link->Ask(Kind::kPut, keeper::Encode(head), NumbersOf(kept), Kind::kOk)
      .status();
}

absl::Status RemoveFrom(keeper::KeeperLink* link, const std::string& key) {
  return link->Ask(Kind::kRemove, keeper::EncodeKey(key), {}, Kind::kOk)
      .status();
}

// Without the first of them (the journal, the host pool, the marks of an
// adoption) the rest is worth nothing to the next broker; a session without its
// slabs is worth more than slabs without their session.
enum class Worth { kEssential, kSession, kSlab };

Worth WorthOf(const Kept& kept) {
  if (RemoteKeeper::SlabOf(kept.key).has_value()) return Worth::kSlab;
  return KeptSessions::SessionOf(kept.key).has_value() ? Worth::kSession
                                                       : Worth::kEssential;
}

bool IsSocket(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

// Without the fds: this process has no room for all of them once more.
absl::StatusOr<absl::flat_hash_set<std::string>> NamesIn(
    keeper::KeeperLink* link, const KeeperClientOptions& options) {
  GMB_ASSIGN_OR_RETURN(const std::vector<Kept> all,
                       FetchAll(link, [&options](base::UniqueFd fd) {
                         (void)Share(std::move(fd), options.disposer);
                         return SharedFd();
                       }));
  absl::flat_hash_set<std::string> names;
  for (const Kept& kept : all) names.insert(kept.key);
  return names;
}

}  // namespace

SharedFd Share(base::UniqueFd fd, ipc::FdDisposer* disposer) {
  if (disposer == nullptr)
    return std::make_shared<const base::UniqueFd>(std::move(fd));
  return {new base::UniqueFd(std::move(fd)), [disposer](base::UniqueFd* last) {
            disposer->Dispose(std::move(*last), "kept");
            delete last;
          }};
}

absl::StatusOr<std::unique_ptr<KeeperClient>> KeeperClient::Connect(
    const KeeperClientOptions& options) {
  keeper::LinkOptions link_options = LinkOptionsOf(options);
  link_options.wait_for_listener = options.wait_for_listener;
  GMB_ASSIGN_OR_RETURN(keeper::KeeperLink link,
                       keeper::KeeperLink::Connect(link_options));
  return std::unique_ptr<KeeperClient>(
      new KeeperClient(options, std::move(link)));
}

absl::StatusOr<std::vector<Kept>> KeeperClient::Adopt() {
  base::MutexLock lock(&mu_);
  if (last_order_ > 0) {
    return absl::FailedPreconditionError(
        "adoption comes before the first entry is put");
  }
  GMB_ASSIGN_OR_RETURN(
      std::vector<Kept> all, FetchAll(&link_, [this](base::UniqueFd fd) {
        const bool slow = IsSocket(fd.get());
        return Share(std::move(fd), slow ? options_.disposer : nullptr);
      }));
  GMB_RETURN_IF_ERROR(CheckDistinct(all));
  for (const Kept& kept : all) Remember(kept);
  return all;
}

absl::Status KeeperClient::Put(Kept kept) {
  GMB_RETURN_IF_ERROR(Check(kept));
  base::MutexLock lock(&mu_);
  if (by_key_.contains(kept.key)) {
    return absl::AlreadyExistsError(
        absl::StrCat("this name is kept already: ", kept.key));
  }
  if (!lost_) {
    const absl::Status put = PutInto(&link_, kept);
    // Where it was not asked it may have room: Refill puts it.
    NoteAnswer(put);
    if (!lost_) GMB_RETURN_IF_ERROR(put);
  }
  Remember(std::move(kept));
  return absl::OkStatus();
}

void KeeperClient::NoteAnswer(const absl::Status& answer) {
  lost_ = link_.broken() || link_.unasked();
  silent_ = lost_ && !absl::IsUnavailable(answer);  // that one has hung up
}

void KeeperClient::Remember(Kept kept) {
  by_key_.emplace(kept.key, ++last_order_);
  entries_.emplace(last_order_, std::move(kept));
}

absl::Status KeeperClient::Remove(const std::string& key) {
  Kept removed;  // closed after the lock is given up
  base::MutexLock lock(&mu_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    return absl::NotFoundError(
        absl::StrCat("nothing is kept under this name: ", key));
  }
  const auto entry = entries_.find(found->second);
  removed = std::move(entry->second);
  entries_.erase(entry);
  by_key_.erase(found);
  const bool was_refused = refused_keys_.erase(key) > 0;
  refused_ = refused_keys_.size();
  if (lost_ || was_refused) return absl::OkStatus();
  const absl::Status gone = RemoveFrom(&link_, key);
  // Where it was not asked the keeper still has it, and no one but Refill looks
  // for what it has too much.
  NoteAnswer(gone);
  return lost_ ? absl::OkStatus() : gone;
}

absl::Status KeeperClient::Done() {
  base::MutexLock lock(&mu_);
  const absl::Status done = link_.Ask(Kind::kDone, "", {}, Kind::kOk).status();
  lost_ = true;
  entries_.clear();
  by_key_.clear();
  return done;
}

bool KeeperClient::lost() const {
  base::MutexLock lock(&mu_);
  return lost_ || displaced_ || link_.HasHungUp();
}

std::optional<KeeperClient::Place> KeeperClient::PlaceOf(
    const std::string& socket) {
  struct stat info {};
  if (::stat(socket.c_str(), &info) != 0) return std::nullopt;
  return Place{info.st_dev, info.st_ino};
}

void KeeperClient::CheckPlace() {
  const std::optional<Place> there = PlaceOf(options_.socket);
  if (there.has_value() && there == place_) {
    displaced_ = false;
    return;
  }
  const absl::StatusOr<keeper::KeeperLink> link =
      keeper::KeeperLink::Connect({.socket = options_.socket,
                                   .role = keeper::Role::kCommand,
                                   .timeout = options_.timeout});
  if (link.ok()) {
    displaced_ = link->welcome().keeper_id != keeper_id();
    if (!displaced_) place_ = there;
    return;
  }
  // Else it is not known: it may be overloaded, or this process be.
  const absl::Status& why = link.status();
  if (absl::IsUnavailable(why) || absl::IsFailedPrecondition(why) ||
      absl::IsInvalidArgument(why)) {
    base::MutexLock lock(&mu_);
    displaced_ = !link_.HasHungUp();  // or it is dead
  }
}

KeeperClient::Difference KeeperClient::Compare(
    const absl::flat_hash_set<std::string>& there) const {
  Difference difference;
  for (const std::string& key : there) {
    if (!by_key_.contains(key)) difference.remove.push_back(key);
  }
  for (const auto& [order, kept] : entries_) {
    if (!there.contains(kept.key)) difference.put.push_back(kept);
  }
  absl::c_stable_sort(difference.put, [](const Kept& a, const Kept& b) {
    return WorthOf(a) < WorthOf(b);
  });
  return difference;
}

keeper::KeeperLink KeeperClient::ChangeTo(
    keeper::KeeperLink link, absl::flat_hash_set<std::string> refused) {
  keeper::KeeperLink former = std::exchange(link_, std::move(link));
  lost_ = false;
  silent_ = false;
  displaced_ = false;
  place_ = std::nullopt;
  refused_ = refused.size();
  refused_keys_ = std::move(refused);
  return former;
}

absl::Status KeeperClient::Refill() {
  keeper::LinkOptions link_options = LinkOptionsOf(options_);
  bool leaves = false;  // a keeper that has all
  {
    base::MutexLock lock(&mu_);
    leaves = displaced_ && !lost_ && !link_.HasHungUp();
    if (!leaves) {
      lost_ = true;
      link_.HangUp();  // one that lives serves one connection of a broker
    } else {
      // A broker of the other keeper that lives is none of ours.
      link_options.wait_for_last = absl::ZeroDuration();
    }
  }
  absl::StatusOr<keeper::KeeperLink> connected =
      keeper::KeeperLink::Connect(link_options);
  if (absl::IsUnavailable(connected.status())) silent_ = false;
  GMB_ASSIGN_OR_RETURN(keeper::KeeperLink link, std::move(connected));
  // The same keeper, perhaps: it was silent for a while.
  GMB_ASSIGN_OR_RETURN(absl::flat_hash_set<std::string> there,
                       NamesIn(&link, options_));
  std::vector<std::string> placed;
  absl::flat_hash_set<std::string> refused;
  const auto make_equal = [&](const Difference& difference) -> absl::Status {
    for (const std::string& key : difference.remove) {
      if (refused.erase(key) == 0) GMB_RETURN_IF_ERROR(RemoveFrom(&link, key));
      there.erase(key);
    }
    for (const Kept& kept : difference.put) {
      const absl::Status put = PutInto(&link, kept);
      if (!put.ok() && (link.broken() || link.unasked())) return put;
      if (!put.ok() && WorthOf(kept) == Worth::kEssential) {
        for (const std::string& key : placed) (void)RemoveFrom(&link, key);
        return put;
      }
      // One that is full has the rest: better than a keeper with nothing.
      if (put.ok())
        placed.push_back(kept.key);
      else
        refused.insert(kept.key);
      there.insert(kept.key);
    }
    return absl::OkStatus();
  };
  // Others put and remove less during each round; the last few are made equal
  // while they wait.
  constexpr size_t kFew = 8;
  std::optional<keeper::KeeperLink> former;
  while (true) {
    Difference difference;
    {
      base::MutexLock lock(&mu_);
      difference = Compare(there);
      if (difference.put.size() + difference.remove.size() <= kFew) {
        GMB_RETURN_IF_ERROR(make_equal(difference));
        former = ChangeTo(std::move(link), std::move(refused));
        break;
      }
    }
    GMB_RETURN_IF_ERROR(make_equal(difference));
  }
  // Or what is destroyed from now on would not come back. One that is dead by
  // now has nothing.
  if (leaves) (void)former->Ask(Kind::kDone, "", {}, Kind::kOk);
  return absl::OkStatus();
}

size_t KeeperClient::entries() const {
  base::MutexLock lock(&mu_);
  return entries_.size();
}

std::string KeeperClient::keeper_id() const {
  base::MutexLock lock(&mu_);
  return link_.welcome().keeper_id;
}

}  // namespace gmb::broker
