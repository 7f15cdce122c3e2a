#ifndef GMB_CLIENT_SESSION_GREETING_H_
#define GMB_CLIENT_SESSION_GREETING_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/unique_fd.h"
#include "gmb/v1/handle.pb.h"
#include "ipc/gate_page.h"
#include "ipc/seqpacket.h"

namespace gmb::internal {

// The session lives as long as the socket.
struct Greeting {
  ipc::SeqpacketSocket socket;
  v1::Welcome welcome;  // session_id and token are valid
  // The session's gate, where the broker sent one of a layout known here.
  std::optional<ipc::GatePage> gate = std::nullopt;
  // The broker takes streams of packets at the same socket.
  bool takes_streams = false;
  // The broker's pidfd; none where the system cannot tell, or it has died.
  base::UniqueFd broker = base::UniqueFd();
};

// How long somebody may be on the way to a socket that was left.
inline constexpr absl::Duration kNextBroker = absl::Seconds(2);

// Connects to a broker's handle socket and greets: Challenge, Hello with this
// process's credentials, Welcome. Blocks for at most `timeout`.
// `program` is cut to 64 printable characters; empty: this program's name.
//
// A refusal is the broker's own status with its ErrorDetail. UNAVAILABLE:
// nobody listens, or the broker hung up; where it was killed, also in the
// middle of the greeting, and has left its socket, after kNextBroker.
// DEADLINE_EXCEEDED: it did not answer.
// FAILED_PRECONDITION: it speaks another version. INTERNAL: not this protocol.
[[nodiscard]] absl::StatusOr<Greeting> Greet(const std::string& path,
                                             const std::string& program,
                                             const std::string& tenant_token,
                                             absl::Duration timeout);

// Whether all that ended since then with this status ended because the broker
// died, so that another one may take its place. Blocks for a moment, and no
// longer than until the deadline, since sockets hang up before their process is
// dead.
[[nodiscard]] bool EndedWithItsBroker(const absl::Status& status,
                                      const base::UniqueFd& broker,
                                      const base::Deadline& deadline);

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_GREETING_H_
