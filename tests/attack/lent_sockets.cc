// A process lends all that it has of a session to a process of another tenant,
// which uses it: that one acts for its lender, and for nobody else.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/attack/attack.h"
#include "tests/attack/hand_stream.h"
#include "tests/attack/odd_files.h"
#include "tests/attack/own_lease.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kLentPatience = absl::Seconds(10);
constexpr absl::Duration kNoReply = absl::Milliseconds(300);
constexpr uint64_t kLentBytes = uint64_t{2} << 20;
// Of the calls on the lent connection; the lender's own was the first.
constexpr uint32_t kOwnTokensCall = 3;
constexpr uint32_t kLendersCall = 5;

v1::ClientMessage AskForQuota() {
  v1::ClientMessage ask;
  ask.mutable_get_quota();
  return ask;
}

base::UniqueFd DuplicateOf(int fd) { return base::UniqueFd(::dup(fd)); }

[[noreturn]] void Lend(const std::string& socket_dir,
                       ipc::SeqpacketSocket borrower) {
  absl::StatusOr<OwnSession> session = OwnSession::Greet(socket_dir);
  HandStream stream;
  if (!session.ok() || !stream.Open(socket_dir, session->welcome().token()) ||
      !stream.Ask(AskForQuota(), kLentPatience).has_value()) {
    ::_exit(1);
  }
  const std::vector<int> sockets = {stream.fd(), session->socket().fd()};
  const absl::Status lent =
      borrower.Send(session->welcome().token(), sockets,
                    /*with_credentials=*/false, kLentPatience);
  if (lent.ok()) (void)borrower.AwaitHangUp(absl::Hours(1));
  ::_exit(1);
}

// It tells a line of words.
class Borrower {
 public:
  Borrower(const AttackOptions& options, pid_t lender, ipc::Packet lent,
           OwnSession own)
      : options_(options),
        lender_(lender),
        token_(std::move(lent.bytes)),
        connection_(std::move(lent.fds[0])),
        handle_(std::move(lent.fds[1])),
        own_(std::move(own)) {}

  // Its own token is of no use on another's connection, nor another's on its
  // own, wherever it has one.
  void TryOtherTokens() {
    HandStream lent;
    lent.OpenOn(DuplicateOf(connection_.get()), kOwnTokensCall,
                own_.welcome().token());
    if (Answers(&lent, kNoReply)) Tell("own_token_served");
    for (const std::string& dir : {options_.socket_dir, options_.other_dir}) {
      HandStream anew;
      if (anew.Open(dir, token_) && Answers(&anew, kNoReply)) Tell("stolen");
    }
  }

  // It leases in its lender's name.
  void UseAsLender() {
    HandStream lent;
    lent.OpenOn(DuplicateOf(connection_.get()), kLendersCall, token_);
    const auto quota = lent.Ask(AskForQuota(), kLentPatience);
    if (!quota.has_value()) return Tell("not_served");
    const bool as_lender =
        quota->quota_report().tenant() != own_.welcome().tenant();
    Tell(as_lender ? "served_as_lender" : "served_as_itself");
    const auto grant = lent.Ask(AcquireOf(kLentBytes), kLentPatience);
    if (grant.has_value() && grant->has_grant() &&
        TakeSlabs(handle_, grant->grant().slabs()).ok()) {
      Tell("leased");
    }
  }

  // The lender's session ends with it, or by what is done in its name.
  void End(bool by_breach) {
    if (by_breach) {
      (void)::write(connection_.get(), "no frame at all", 15);
    } else {
      ::kill(lender_, SIGKILL);
    }
    Tell(handle_.AwaitHangUp(kLentPatience)
             ? by_breach ? "ended_by_breach" : "ended_by_death"
             : "not_ended");
    HandStream own;
    const bool lives = own_.Lives() &&
                       own.Open(options_.other_dir, own_.welcome().token()) &&
                       Answers(&own, kLentPatience);
    Tell(lives ? "own_session_lives" : "own_session_lost");
  }

  [[nodiscard]] const std::string& told() const { return told_; }

 private:
  static bool Answers(HandStream* stream, absl::Duration patience) {
    return stream->Ask(AskForQuota(), patience).has_value();
  }
  void Tell(const std::string& word) { told_ += word + ' '; }

  const AttackOptions& options_;
  const pid_t lender_;
  const std::string token_;
  base::UniqueFd connection_;
  ipc::SeqpacketSocket handle_;
  OwnSession own_;
  std::string told_;
};

std::string Borrow(const AttackOptions& options, pid_t lender,
                   ipc::SeqpacketSocket from, bool by_breach) {
  absl::StatusOr<OwnSession> own = OwnSession::Greet(options.other_dir);
  absl::StatusOr<ipc::Packet> lent = from.Receive(kLentPatience);
  if (!own.ok() || !lent.ok() || lent->fds.size() != 2) return "not_lent ";
  Borrower borrower(options, lender, *std::move(lent), *std::move(own));
  borrower.TryOtherTokens();
  borrower.UseAsLender();
  borrower.End(by_breach);
  return borrower.told();
}

}  // namespace

absl::Status LentSockets(Attack& attack) {
  for (bool by_breach = false; attack.GoesOn(); by_breach = !by_breach) {
    SocketPair between = MakeSocketPair(SOCK_SEQPACKET);
    SocketPair report = MakeSocketPair(SOCK_SEQPACKET);
    const pid_t lender = ::fork();
    if (lender == 0) {
      ::signal(SIGTERM, SIG_IGN);  // the attack ends between two loans
      between.ends[1].reset();
      Lend(attack.options().socket_dir,
           ipc::SeqpacketSocket(std::move(between.ends[0])));
    }
    between.ends[0].reset();
    const pid_t borrower = ::fork();
    if (borrower == 0) {
      ::signal(SIGTERM, SIG_IGN);
      const std::string told =
          Borrow(attack.options(), lender,
                 ipc::SeqpacketSocket(std::move(between.ends[1])), by_breach);
      (void)::write(report.ends[1].get(), told.data(), told.size());
      ::_exit(0);
    }
    between.ends[1].reset();
    while (::waitpid(borrower, nullptr, 0) < 0 && errno == EINTR) {
    }
    ::kill(lender, SIGKILL);
    ::waitpid(lender, nullptr, 0);
    report.ends[1].reset();
    ipc::SeqpacketSocket reader(std::move(report.ends[0]));
    const absl::StatusOr<ipc::Packet> told = reader.Receive(kLentPatience);
    if (!told.ok()) continue;
    for (const absl::string_view word :
         absl::StrSplit(told->bytes, ' ', absl::SkipEmpty()))
      attack.Count(std::string(word));
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
