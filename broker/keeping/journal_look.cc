// A journal that is still written, read by who is to take it over later.
#include "broker/keeping/journal_look.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "broker/keeping/journal_file.h"
#include "broker/keeping/journal_format.h"
#include "keeper/link/keeper_link.h"
#include "keeper/wire/frame.h"
#include "keeper/wire/messages.h"

namespace gmb::broker {
namespace {

constexpr int kLooks = 40;
constexpr absl::Duration kPause = absl::Milliseconds(25);

absl::Status ReadInto(int fd, char* to, size_t bytes, size_t from) {
  while (bytes > 0) {
    const ssize_t read = ::pread(fd, to, bytes, static_cast<off_t>(from));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return absl::ErrnoToStatus(errno, "cannot read the journal");
    to += read;
    from += static_cast<size_t>(read);
    bytes -= static_cast<size_t>(read);
  }
  return absl::OkStatus();
}

absl::StatusOr<JournalContents> CopyOut(int fd, size_t bytes) {
  // Numbers, for their alignment.
  std::vector<uint64_t> copy(bytes / sizeof(uint64_t) + 1);
  auto* const memory = reinterpret_cast<char*>(copy.data());
  GMB_RETURN_IF_ERROR(ReadInto(fd, memory, bytes, 0));
  // Once more, after the slots: else what was committed meanwhile would count
  // as damaged.
  GMB_RETURN_IF_ERROR(ReadInto(fd, memory + kJournalCommitAt, sizeof(uint64_t),
                               kJournalCommitAt));
  return ReadJournal({memory, bytes});
}

absl::StatusOr<FoundRecords> LookOnce(int fd, size_t bytes) {
  GMB_ASSIGN_OR_RETURN(const JournalContents contents, CopyOut(fd, bytes));
  return ReadRecords(contents);
}

}  // namespace

absl::StatusOr<FoundRecords> LookAtJournal(int fd) {
  GMB_ASSIGN_OR_RETURN(const size_t bytes, JournalSizeOf(fd));
  absl::StatusOr<FoundRecords> last = absl::DataLossError("never looked at");
  // The records that every readable look so far has set aside.
  std::set<std::string> always;
  bool any = false;
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) absl::SleepFor(kPause);
    absl::StatusOr<FoundRecords> found = LookOnce(fd, bytes);
    if (!found.ok()) {
      // The head, cut in two.
      if (!absl::IsDataLoss(found.status())) return found;
      if (!any) last = std::move(found);
      continue;
    }
    const std::set<std::string> now(found->set_aside.begin(),
                                    found->set_aside.end());
    std::set<std::string> both;
    std::set_intersection(always.begin(), always.end(), now.begin(), now.end(),
                          std::inserter(both, both.begin()));
    always = any ? both : now;
    any = true;
    found->set_aside.assign(always.begin(), always.end());
    last = std::move(found);
    if (always.empty()) break;
  }
  return last;
}

absl::StatusOr<JournalFill> FillOfJournal(int fd) {
  GMB_ASSIGN_OR_RETURN(const size_t bytes, JournalSizeOf(fd));
  GMB_ASSIGN_OR_RETURN(const JournalContents contents, CopyOut(fd, bytes));
  return JournalFill{.used = contents.records.size(), .slots = contents.slots};
}

absl::StatusOr<base::UniqueFd> FetchJournal(const std::string& keeper_socket) {
  GMB_ASSIGN_OR_RETURN(
      keeper::KeeperLink link,
      keeper::KeeperLink::Connect(
          {.socket = keeper_socket, .role = keeper::Role::kCommand}));
  GMB_ASSIGN_OR_RETURN(
      keeper::KeeperLink::Answer answer,
      link.Ask(keeper::Kind::kLook, "", {}, keeper::Kind::kOk));
  if (answer.fds.size() == 1) return std::move(answer.fds[0]);
  return absl::DataLossError("the keeper has sent no journal");
}

}  // namespace gmb::broker
