// Each fd that has to outlive the broker, on its way to the keeper and back.
#include "broker/keeping/keeper_client.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "broker/keeping/fetched.h"
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

}  // namespace

absl::StatusOr<std::unique_ptr<KeeperClient>> KeeperClient::Connect(
    const KeeperClientOptions& options) {
  GMB_ASSIGN_OR_RETURN(keeper::KeeperLink link,
                       keeper::KeeperLink::Connect(LinkOptionsOf(options)));
  return std::unique_ptr<KeeperClient>(
      new KeeperClient(options, std::move(link)));
}

absl::StatusOr<std::vector<Kept>> KeeperClient::Adopt() {
  base::MutexLock lock(&mu_);
  if (last_order_ > 0) {
    return absl::FailedPreconditionError(
        "adoption comes before the first entry is put");
  }
  GMB_ASSIGN_OR_RETURN(std::vector<Kept> all, FetchAll(&link_));
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
  GMB_RETURN_IF_ERROR(PutNow(kept));
  Remember(std::move(kept));
  return absl::OkStatus();
}

absl::Status KeeperClient::PutNow(const Kept& kept) {
  const keeper::EntryHead head{.key = kept.key,
                               .record = kept.record,
                               .fds = static_cast<uint8_t>(kept.fds.size()),
                               .peer = kept.peer};
  const absl::Status put =
      link_.Ask(Kind::kPut, keeper::Encode(head), NumbersOf(kept), Kind::kOk)
          .status();
  lost_ = lost_ || link_.broken();
  return put;
}

void KeeperClient::Remember(Kept kept) {
  by_key_.emplace(kept.key, ++last_order_);
  entries_.emplace(last_order_, std::move(kept));
}

absl::Status KeeperClient::Remove(const std::string& key) {
  base::MutexLock lock(&mu_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    return absl::NotFoundError(
        absl::StrCat("nothing is kept under this name: ", key));
  }
  entries_.erase(found->second);
  by_key_.erase(found);
  const absl::Status removed =
      link_.Ask(Kind::kRemove, keeper::EncodeKey(key), {}, Kind::kOk).status();
  lost_ = lost_ || link_.broken();
  return removed;
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
  return lost_ || link_.HasHungUp();
}

absl::Status KeeperClient::Refill() {
  base::MutexLock lock(&mu_);
  lost_ = true;
  link_.HangUp();  // one that lives serves one connection of a broker at a time
  GMB_ASSIGN_OR_RETURN(link_,
                       keeper::KeeperLink::Connect(LinkOptionsOf(options_)));
  // The same keeper, perhaps: it was silent for a while.
  GMB_ASSIGN_OR_RETURN(const std::vector<Kept> there, FetchAll(&link_));
  absl::flat_hash_map<std::string, bool> known;
  for (const Kept& kept : there) {
    known[kept.key] = true;
    if (by_key_.contains(kept.key)) continue;
    GMB_RETURN_IF_ERROR(
        link_.Ask(Kind::kRemove, keeper::EncodeKey(kept.key), {}, Kind::kOk)
            .status());
  }
  for (const auto& [order, kept] : entries_) {
    if (known.contains(kept.key)) continue;
    GMB_RETURN_IF_ERROR(PutNow(kept));
  }
  lost_ = false;
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
