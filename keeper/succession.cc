// A keeper takes the place of one that lives: what it asks of it.
#include "keeper/succession.h"

#include <poll.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ipc/pidfd.h"
#include "ipc/seqpacket.h"
#include "keeper/wire/frame.h"

namespace gmb::keeper {
namespace {

// From a hang-up to the death of the process that hung up.
constexpr int kDiesWithinMs = 10'000;

absl::Status NotLeft(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the keeper to be replaced has not left everything: ", what,
                   ": it goes on"));
}

bool HasDied(const base::UniqueFd& pidfd) {
  pollfd dies{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&dies, 1, kDiesWithinMs);
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

}  // namespace

absl::StatusOr<Succession> Succession::Begin(const LinkOptions& options) {
  GMB_ASSIGN_OR_RETURN(KeeperLink link, KeeperLink::Connect(options));
  GMB_ASSIGN_OR_RETURN(const ipc::PeerCredentials peer,
                       ipc::ConnectedPeer(link.fd()));
  GMB_ASSIGN_OR_RETURN(base::UniqueFd pidfd,
                       ipc::OpenPeerPidfd(link.fd(), peer.pid));
  return Succession(std::move(link), std::move(pidfd));
}

absl::StatusOr<Inheritance> Succession::TakeAll(const Shelf::Limits& limits,
                                                bool managed) {
  const Welcome& there = link_.welcome();
  if (there.entries > limits.entries || there.fds > limits.fds) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the keeper to be replaced has more than this one may: ", there.entries,
        " entries, ", there.fds, " fds, of at most ", limits.entries, " and ",
        limits.fds,
        ": raise the limit on open files (systemd: LimitNOFILE=, shell: "
        "ulimit -Hn)"));
  }
  GMB_RETURN_IF_ERROR(
      link_.Ask(Kind::kHandOver, EncodeHandOver(managed), {}, Kind::kOk)
          .status());
  Inheritance all;
  GMB_ASSIGN_OR_RETURN(all.entries, TakeEntries());
  GMB_ASSIGN_OR_RETURN(KeeperLink::Answer rest,
                       link_.Ask(Kind::kTake, "", {}, Kind::kEstate));
  GMB_ASSIGN_OR_RETURN(all.estate, DecodeEstate(rest.body));
  if (rest.fds.size() != all.estate.fds() ||
      all.entries.size() != all.estate.entries ||
      (!all.entries.empty() &&
       all.entries.back().head.order > all.estate.last_order)) {
    return NotLeft(absl::StrCat(all.entries.size(), " of ", all.estate.entries,
                                " entries, and ", rest.fds.size(), " of ",
                                all.estate.fds(), " fds beside them"));
  }
  base::UniqueFd* const takers[] = {&all.directory, &all.listener,
                                    &all.broker_pidfd, &all.broker};
  for (size_t i = 0; i < rest.fds.size(); ++i)
    *takers[i] = std::move(rest.fds[i]);
  return all;
}

absl::StatusOr<std::vector<KeptEntry>> Succession::TakeEntries() {
  std::vector<KeptEntry> entries;
  uint64_t last = 0;
  for (bool more = true; more;) {
    GMB_ASSIGN_OR_RETURN(
        KeeperLink::Answer answer,
        link_.Ask(Kind::kFetch, EncodeAfter(last), {}, Kind::kPage));
    GMB_ASSIGN_OR_RETURN(Page page, DecodePage(answer.body));
    more = page.more;
    size_t next = 0;
    for (EntryHead& head : page.entries) {
      const bool good = head.order > last && head.fds > 0 &&
                        next + head.fds <= answer.fds.size() &&
                        (!head.peer.has_value() || *head.peer < head.fds);
      if (!good) return NotLeft(absl::StrCat("the entry ", head.key));
      last = head.order;
      KeptEntry& entry = entries.emplace_back();
      for (size_t i = 0; i < head.fds; ++i)
        entry.fds.push_back(std::move(answer.fds[next++]));
      entry.head = std::move(head);
    }
    if (next != answer.fds.size() || (more && page.entries.empty()))
      return NotLeft("a page of another size");
  }
  return entries;
}

absl::Status Succession::Commit() {
  if (link_.broken())
    return absl::AbortedError("the keeper to be replaced has gone on");
  const absl::Status taken =
      link_.Ask(Kind::kTaken, "", {}, Kind::kOk).status();
  if (taken.ok()) return taken;
  // At once, so that it goes on where it has not answered yet.
  const bool has_hung_up = absl::IsUnavailable(taken) && link_.broken();
  link_.HangUp();
  // It serves nobody between its Estate and its answer, and says so before it
  // goes on. A hang-up without a word is its death: nothing has changed since.
  if (!has_hung_up || link_.HasUnread() || !HasDied(pidfd_)) return taken;
  return absl::OkStatus();
}

}  // namespace gmb::keeper
