// Adoption's first step: what the last broker has left, and whether it can be
// that.
#include "broker/keeping/fetched.h"

#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "keeper/wire/messages.h"

namespace gmb::broker {
namespace {

using keeper::EntryHead;
using keeper::Kind;

absl::Status Wrong(const std::string& what) {
  return absl::DataLossError(absl::StrCat(
      "the keeper sends something else than it was given, and nothing can be "
      "taken over from it: ",
      what));
}

// Below 0: the kernel does not say. Else 0: the same open file; 1: `a` comes
// before `b`; 2: after it.
int64_t Compare(int a, int b) {
  const pid_t self = ::getpid();
  return ::syscall(SYS_kcmp, self, self, KCMP_FILE, a, b);
}

// Device and inode; of all that can't be looked at the same.
using File = std::pair<dev_t, ino_t>;
File FileOf(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

// Appends a page to `all`.
absl::Status Take(keeper::Page page, std::vector<base::UniqueFd> fds,
                  const ShareFd& share, uint64_t* last_order,
                  std::vector<Kept>* all) {
  auto next = fds.begin();
  for (EntryHead& head : page.entries) {
    if (head.order <= *last_order)
      return Wrong(absl::StrCat(head.key, " is out of order"));
    *last_order = head.order;
    if (fds.end() - next < head.fds)
      return Wrong(absl::StrCat("fds are missing of ", head.key));
    std::vector<SharedFd> its;
    its.reserve(head.fds);
    for (int i = 0; i < head.fds; ++i) {
      its.push_back(share(std::move(*next++)));
    }
    all->push_back({.key = std::move(head.key),
                    .record = std::move(head.record),
                    .fds = std::move(its),
                    .peer = head.peer});
  }
  if (next != fds.end()) return Wrong("there are fds that belong to nothing");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Kept>> FetchAll(keeper::KeeperLink* link,
                                           const ShareFd& share) {
  std::vector<Kept> all;
  uint64_t last_order = 0;
  bool more = true;
  while (more) {
    GMB_ASSIGN_OR_RETURN(
        keeper::KeeperLink::Answer answer,
        link->Ask(Kind::kFetch, keeper::EncodeAfter(last_order), {},
                  Kind::kPage));
    absl::StatusOr<keeper::Page> page = keeper::DecodePage(answer.body);
    if (!page.ok()) return Wrong(std::string(page.status().message()));
    more = page->more;
    if (more && page->entries.empty()) return Wrong("a page is empty");
    GMB_RETURN_IF_ERROR(Take(*std::move(page), std::move(answer.fds), share,
                             &last_order, &all));
  }
  if (all.size() != link->welcome().entries) {
    return Wrong(absl::StrCat(all.size(), " of ", link->welcome().entries,
                              " entries came"));
  }
  absl::flat_hash_set<std::string> keys;
  for (const Kept& kept : all) {
    if (!keys.insert(kept.key).second)
      return Wrong(absl::StrCat(kept.key, " comes twice"));
  }
  return all;
}

absl::Status CheckDistinct(const std::vector<Kept>& all) {
  struct Place {
    int fd;
    const Kept* kept;
    File file;
  };
  std::vector<Place> places;
  for (const Kept& kept : all) {
    for (const SharedFd& fd : kept.fds)
      places.push_back({fd->get(), &kept, FileOf(fd->get())});
  }
  if (places.empty() || Compare(places[0].fd, places[0].fd) != 0)
    return absl::OkStatus();
  // One open file is of one file. Most are of one of their own, which saves the
  // kernel many questions.
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.file != b.file ? a.file < b.file : Compare(a.fd, b.fd) == 1;
  });
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i - 1].file != places[i].file ||
        Compare(places[i - 1].fd, places[i].fd) != 0)
      continue;
    return Wrong(absl::StrCat(places[i - 1].kept->key, " and ",
                              places[i].kept->key, " are one and the same fd"));
  }
  return absl::OkStatus();
}

}  // namespace gmb::broker
