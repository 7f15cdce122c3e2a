#ifndef GMB_KEEPER_LINK_KEEPER_LINK_H_
#define GMB_KEEPER_LINK_KEEPER_LINK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/unique_fd.h"
#include "ipc/seqpacket.h"
#include "keeper/wire/frame.h"
#include "keeper/wire/messages.h"

namespace gmb::keeper {

struct LinkOptions {
  std::string socket;  // the keeper's path
  Role role = Role::kBroker;
  // For the greeting without its wait, and for each answer.
  absl::Duration timeout = absl::Seconds(5);
  // A broker's: how long it waits for the death of the one before it. Zero: it
  // is refused at once.
  absl::Duration wait_for_last = absl::ZeroDuration();
  // And how long for somebody who listens, and does not hang up on a greeting:
  // one may have been started beside it, or may be replaced just now.
  absl::Duration wait_for_listener = absl::ZeroDuration();
};

// The other side of a keeper: one connection, one question at a time. Blocks.
// Move-only, not thread-safe.
//
// After any error of the connection it is broken, and says so to every further
// question: the keeper has hung up then, or an answer would be taken for that
// of a later question.
class KeeperLink {
 public:
  // UNAVAILABLE: nobody listens. FAILED_PRECONDITION: the directory is not as a
  // keeper's must be, or the socket is another user's; or the last broker
  // lives, and the message says which process that is. INVALID_ARGUMENT: the
  // keeper speaks no version of ours. DEADLINE_EXCEEDED: it does not answer.
  static absl::StatusOr<KeeperLink> Connect(const LinkOptions& options);

  // The keeper's answer, which is of kind `expected`; its refusal as an error.
  // `fds` stay the caller's.
  struct Answer {
    std::string body;
    std::vector<base::UniqueFd> fds;
  };
  absl::StatusOr<Answer> Ask(Kind kind, absl::string_view body,
                             absl::Span<const int> fds, Kind expected);

  [[nodiscard]] const Welcome& welcome() const { return welcome_; }
  // Nothing can be asked any more.
  [[nodiscard]] bool broken() const { return broken_; }
  // The kernel had no memory for the last question, say: the keeper has not
  // heard it, and can be asked again.
  [[nodiscard]] bool unasked() const { return unasked_; }
  // The keeper has hung up, most often because it is dead. A look, without
  // waiting.
  [[nodiscard]] bool HasHungUp() const {
    return socket_.AwaitHangUp(absl::ZeroDuration());
  }
  // Something that the keeper has said was not read yet; also once it has hung
  // up. A look, without waiting.
  [[nodiscard]] bool HasUnread();
  // Ends the connection. All that was put stays with the keeper.
  void HangUp() {
    broken_ = true;
    socket_.Shutdown();
  }
  // To be polled for EPOLLRDHUP.
  [[nodiscard]] int fd() const { return socket_.fd(); }

 private:
  KeeperLink(ipc::SeqpacketSocket socket, const LinkOptions& options)
      : socket_(std::move(socket)), timeout_(options.timeout) {}

  static absl::StatusOr<ipc::SeqpacketSocket> Dial(const LinkOptions& options);
  static absl::StatusOr<KeeperLink> TryConnect(const LinkOptions& options);
  absl::Status Greet(const LinkOptions& options);
  absl::StatusOr<Frame> Receive(absl::Duration timeout,
                                std::vector<base::UniqueFd>* fds);

  ipc::SeqpacketSocket socket_;
  absl::Duration timeout_;
  Welcome welcome_;
  uint32_t last_call_ = 0;
  bool broken_ = false;
  bool unasked_ = false;
};

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_LINK_KEEPER_LINK_H_
