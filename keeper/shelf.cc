// All that the keeper keeps, between a Put and the next broker.
#include "keeper/shelf.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gmb::keeper {

absl::Status Shelf::Check(const EntryHead& head, size_t fds,
                          size_t closing) const {
  if (fds != head.fds) {
    return absl::InvalidArgumentError(
        absl::StrCat("an entry says that it has ", head.fds, " fds, and ", fds,
                     " came with it: ", head.key));
  }
  if (by_key_.contains(head.key)) {
    return absl::AlreadyExistsError(
        absl::StrCat("this name is kept already: ", head.key));
  }
  if (by_order_.size() >= limits_.entries ||
      fds_ + closing + fds > limits_.fds) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the keeper is full: ", by_order_.size(), " of ", limits_.entries,
        " entries, ", fds_, " of ", limits_.fds,
        " fds: raise its limit on open files (systemd: LimitNOFILE=, shell: "
        "ulimit -Hn), or lower the broker's max_handles"));
  }
  return absl::OkStatus();
}

const KeptEntry& Shelf::Add(KeptEntry entry) {
  const uint64_t order = ++last_order_;
  entry.head.order = order;
  fds_ += entry.fds.size();
  by_key_.emplace(entry.head.key, order);
  return by_order_.emplace(order, std::move(entry)).first->second;
}

void Shelf::Inherit(std::vector<KeptEntry> entries, uint64_t last_order) {
  for (KeptEntry& entry : entries) {
    const uint64_t order = entry.head.order;
    fds_ += entry.fds.size();
    by_key_.emplace(entry.head.key, order);
    by_order_.emplace(order, std::move(entry));
  }
  last_order_ = last_order;
}

std::optional<KeptEntry> Shelf::Take(absl::string_view key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  const auto at = by_order_.find(found->second);
  KeptEntry entry = std::move(at->second);
  by_order_.erase(at);
  by_key_.erase(found);
  fds_ -= entry.fds.size();
  return entry;
}

std::vector<KeptEntry> Shelf::TakeAll() {
  std::vector<KeptEntry> all;
  all.reserve(by_order_.size());
  for (auto& [order, entry] : by_order_) all.push_back(std::move(entry));
  by_order_.clear();
  by_key_.clear();
  fds_ = 0;
  return all;
}

const KeptEntry* Shelf::Newest(absl::string_view prefix) const {
  for (auto at = by_order_.rbegin(); at != by_order_.rend(); ++at) {
    if (absl::StartsWith(at->second.head.key, prefix)) return &at->second;
  }
  return nullptr;
}

Shelf::Next Shelf::After(uint64_t order) const {
  Next next;
  size_t fds = 0;
  for (auto at = by_order_.upper_bound(order); at != by_order_.end(); ++at) {
    fds += at->second.fds.size();
    if (next.entries.size() == kMaxPageEntries || fds > kMaxPageFds) {
      next.more = true;
      break;
    }
    next.entries.push_back(&at->second);
  }
  return next;
}

}  // namespace gmb::keeper
