#ifndef GMB_CLIENT_SESSION_SESSION_H_
#define GMB_CLIENT_SESSION_SESSION_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/gate/gate.h"
#include "client/lease/mover.h"
#include "client/session/calls.h"
#include "client/session/gate_switch.h"
#include "client/session/greeting.h"
#include "client/session/handle_channel.h"
#include "client/session/inbox.h"
#include "client/session/lease_calls.h"
#include "client/session/notifier.h"
#include "client/session/seats.h"
#include "client/session/session_wait.h"
#include "client/session/socket_dir.h"
#include "client/session/stream_channel.h"
#include "client/session/trim_hook.h"
#include "client/session/trim_reports.h"
#include "gmb/options.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.pb.h"
#include "ipc/gate_page.h"

namespace gmb::internal {

// One session with a broker: both sockets, from the greeting to the hang-up.
// Shared by the Client and its leases; ends when the last of them lets go.
//
// It puts its parts together and has no lock. The program's words go from left
// to right, the broker's from right to left:
//
//   LeaseCalls, GateSwitch, TrimReports -> Calls -> StreamChannel -> broker
//   Calls, Mover, Gate, TrimHook, Notifier <- Inbox <- StreamChannel,
//                                                      HandleChannel
//
// The locks of Calls and StreamChannel are the last to be taken: nothing of the
// session is called under them.
//
// Owns one thread, which reads the sockets, acknowledges slabs, and opens the
// stream again when it broke. Calls that wait read the sockets in its place.
// Where the stream is gRPC's, its threads bring the messages. The gate's parker
// and the mover have threads too. Thread-safe. In a forked child
// only CheckAlive may be called and the object must not be destroyed.
class Session final : public std::enable_shared_from_this<Session>,
                      private MoverOwner {
 public:
  // Greets, opens the stream, and waits until it has answered. `notifier`
  // is told what the broker says by itself, `trim_hook` what it asks for.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<Session>> Open(
      const ClientOptions& options, std::shared_ptr<Notifier> notifier,
      std::shared_ptr<TrimHook> trim_hook);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  [[nodiscard]] const v1::Welcome& welcome() const { return welcome_; }
  // Of the broker's sockets, absolute.
  [[nodiscard]] const std::string& socket_dir() const { return socket_dir_; }
  [[nodiscard]] bool InForkedChild() const {
    return calls_.fork_guard().InChild();
  }
  // OK, or why calls fail: forked, or over.
  [[nodiscard]] absl::Status CheckAlive() const { return calls_.CheckAlive(); }
  [[nodiscard]] absl::Duration answer_timeout() const {
    return calls_.answer_timeout();
  }
  [[nodiscard]] absl::StatusOr<std::vector<QuotaView>> GetQuota();

  [[nodiscard]] LeaseCalls& leases() { return leases_; }
  [[nodiscard]] TrimReports& trims() { return trims_; }
  [[nodiscard]] GateSwitch& gate_switch() { return gate_switch_; }
  // See Mover.
  void SetWitness(Mover::Witness witness) {
    mover_.SetWitness(std::move(witness));
  }
  // The session's gate; where the broker gave none, one that only counts.
  [[nodiscard]] Gate& gate() { return gate_switch_.gate(); }

 private:
  Session(const ClientOptions& options, std::shared_ptr<Notifier> notifier,
          std::shared_ptr<TrimHook> trim_hook, SocketDir dir, Greeting greeting,
          ipc::GatePage page, SessionWait wait);

  // The session's thread.
  void Run();
  void HangUp();

  void SendMoved(v1::ClientMessage answer) override;
  void MoverFailed(const absl::Status& why) override { calls_.End(why); }

  const std::shared_ptr<Notifier> notifier_;
  const std::shared_ptr<TrimHook> trim_hook_;
  const v1::Welcome welcome_;
  const std::string socket_dir_;
  SessionWait wait_;  // the session's thread
  std::atomic<bool> closing_ = false;

  Seats seats_;
  Inbox inbox_;
  Calls calls_;
  HandleChannel handles_;
  StreamChannel stream_;
  LeaseCalls leases_;
  TrimReports trims_;
  // From here on: threads that use all of the above.
  Mover mover_;
  GateSwitch gate_switch_;
  std::thread thread_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_SESSION_H_
