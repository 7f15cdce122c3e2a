// A session's three fds, on their way to the next broker.
#include "broker/keeping/kept_sessions.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace gmb::broker {
namespace {

constexpr absl::string_view kSessionPrefix = "session/";
// Of the fds of an entry.
constexpr size_t kSocket = 0;
constexpr uint8_t kPidfd = 1;
constexpr size_t kGatePage = 2;
constexpr size_t kFds = 3;

absl::StatusOr<base::UniqueFd> Duplicate(int fd) {
  base::UniqueFd duplicate(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (duplicate.valid()) return duplicate;
  return absl::ErrnoToStatus(errno, "cannot duplicate a session's fd");
}

}  // namespace

absl::Status KeptSessions::Keep(uint64_t session, int socket,
                                const SharedFd& pidfd, int gate_page) {
  if (pidfd == nullptr) {
    return absl::FailedPreconditionError(
        "the kernel gives no pidfd of its process, which is of another pid "
        "namespace");
  }
  GMB_ASSIGN_OR_RETURN(base::UniqueFd connection, Duplicate(socket));
  SharedFd shared = Share(std::move(connection), disposer_);
  GMB_ASSIGN_OR_RETURN(base::UniqueFd page, Duplicate(gate_page));
  return client_->Put(
      {.key = KeyOf(session),
       .fds = {std::move(shared), pidfd, Share(std::move(page))},
       .peer = kPidfd});
}

absl::Status KeptSessions::End(uint64_t session) {
  const absl::Status gone = client_->Remove(KeyOf(session));
  return absl::IsNotFound(gone) ? absl::OkStatus() : gone;
}

std::string KeptSessions::KeyOf(uint64_t session) {
  return absl::StrCat(kSessionPrefix, session);
}

std::optional<uint64_t> KeptSessions::SessionOf(absl::string_view key) {
  uint64_t session = 0;
  if (!absl::ConsumePrefix(&key, kSessionPrefix) ||
      !absl::SimpleAtoi(key, &session) || key != absl::StrCat(session)) {
    return std::nullopt;
  }
  return session;
}

absl::StatusOr<KeptSession> KeptSessions::Of(const Kept& kept) {
  if (kept.fds.size() != kFds || kept.peer != kPidfd) {
    return absl::InvalidArgumentError(
        absl::StrCat("what is kept under this name is no session: ", kept.key));
  }
  return KeptSession{.socket = kept.fds[kSocket],
                     .pidfd = kept.fds[kPidfd],
                     .gate_page = kept.fds[kGatePage]};
}

}  // namespace gmb::broker
