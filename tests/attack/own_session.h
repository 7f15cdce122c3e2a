#ifndef GMB_TESTS_ATTACK_OWN_SESSION_H_
#define GMB_TESTS_ATTACK_OWN_SESSION_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "gmb/v1/handle.pb.h"
#include "ipc/seqpacket.h"
#include "tests/attack/attack.h"

namespace gmb::attack {

// The nonce of the Challenge, and the Hello that answers it.
[[nodiscard]] absl::StatusOr<std::string> ReceiveNonce(
    ipc::SeqpacketSocket& socket);
[[nodiscard]] std::string HelloFrame(const std::string& nonce);

// A session of this process, greeted by hand. It ends with the object.
class OwnSession {
 public:
  static absl::StatusOr<OwnSession> Greet(const std::string& socket_dir);

  [[nodiscard]] const v1::Welcome& welcome() const { return welcome_; }
  [[nodiscard]] ipc::SeqpacketSocket& socket() { return socket_; }
  // The memfd of its gate's page.
  [[nodiscard]] const base::UniqueFd& gate() const { return gate_; }
  // False once the broker has hung up. Drops what it has sent.
  [[nodiscard]] bool Lives();

 private:
  OwnSession(ipc::SeqpacketSocket socket, v1::Welcome welcome,
             base::UniqueFd gate)
      : socket_(std::move(socket)),
        welcome_(std::move(welcome)),
        gate_(std::move(gate)) {}

  ipc::SeqpacketSocket socket_;
  v1::Welcome welcome_;
  base::UniqueFd gate_;
};

// Keeps a session as long as the attack asks for one: greets anew when the
// broker has ended it.
class Sessions {
 public:
  explicit Sessions(Attack* attack) : attack_(attack) {}

  // False while one is wanted and there is none.
  [[nodiscard]] bool Ready();
  // Its token; without a session one of zeros.
  [[nodiscard]] std::string Token() const;
  [[nodiscard]] OwnSession* session() {
    return session_.has_value() ? &*session_ : nullptr;
  }

 private:
  Attack* const attack_;
  std::optional<OwnSession> session_;
};

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_OWN_SESSION_H_
