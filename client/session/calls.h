#ifndef GMB_CLIENT_SESSION_CALLS_H_
#define GMB_CLIENT_SESSION_CALLS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "client/fork_guard.h"
#include "client/lease/early_mapping.h"
#include "client/session/busy_wait.h"
#include "client/session/handle_channel.h"
#include "client/session/request_table.h"
#include "client/session/seats.h"
#include "client/session/stream_channel.h"
#include "gmb/options.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.pb.h"

namespace gmb::internal {

// When the two parts of a lease came, for measurements.
struct Arrivals {
  std::chrono::steady_clock::time_point slabs{};
  std::chrono::steady_clock::time_point grant{};
};

// The requests of a session, and the threads that wait for the answers: the
// lock around the RequestTable. It says what the stream is to write, and takes
// what came over both sockets. Thread-safe. In a forked child only CheckAlive
// and fork_guard may be called.
class Calls final : public MessageSource {
 public:
  using Clock = std::chrono::steady_clock;

  // All outlive the last call; the channels need not be made yet.
  Calls(absl::Duration answer_timeout, StreamChannel* stream,
        HandleChannel* handles, Seats* seats);

  [[nodiscard]] const ForkGuard& fork_guard() const { return fork_guard_; }
  // OK, or why calls fail: forked, or over.
  [[nodiscard]] absl::Status CheckAlive() const;
  [[nodiscard]] absl::Duration answer_timeout() const {
    return answer_timeout_;
  }

  // Writes `message` and blocks until its answer is here; an error is the
  // broker's refusal, or says that the session is over. Ask waits for the
  // answer timeout.
  [[nodiscard]] absl::StatusOr<Answer> Ask(v1::ClientMessage message);
  [[nodiscard]] absl::StatusOr<Answer> AskWithin(v1::ClientMessage message,
                                                 absl::Duration patience);
  [[nodiscard]] absl::StatusOr<Answer> AskUntil(v1::ClientMessage message,
                                                Clock::time_point deadline);
  // For an Acquire or Attach, which may wait at the broker for `wait`: blocks
  // until the lease is granted and all of its slabs are here. `early` and
  // `arrivals` may be null.
  [[nodiscard]] absl::StatusOr<Granted> AskForLease(
      v1::ClientMessage message, const AcquireOptions& options,
      absl::Duration wait, EarlyMapping* early, Arrivals* arrivals);

  // Asks for a lease whose answer is waited for later, by TakeLease with the
  // number that this returns: Flush afterwards. Nothing is mapped until then,
  // and the broker's answer, with its slabs, is kept here. A lease that came
  // and is not wanted has to be taken all the same, and released.
  [[nodiscard]] absl::StatusOr<uint64_t> AskAhead(v1::ClientMessage message);
  // Once for each; waits until the answer timeout after it was asked for.
  // `early` may be null.
  [[nodiscard]] absl::StatusOr<Granted> TakeLease(uint64_t asked,
                                                  const AcquireOptions& options,
                                                  EarlyMapping* early);

  // Writes a message without an answer, or whose answer nobody waits for,
  // unless the session is over: now, or soon.
  void Send(v1::ClientMessage message);
  void SendSoon(v1::ClientMessage message);
  // The same for a caller that orders messages by a lock: Queue, unlock, Flush.
  // An error says that the session is over.
  [[nodiscard]] absl::Status Queue(v1::ClientMessage message);
  void Flush() { stream_.Poke(); }

  // Ends the session: every call returns `why` from now on, and the stream is
  // closed. Only the first end counts.
  void End(const absl::Status& why);

  // An answer from the stream, and slabs of a request from the handle socket.
  // Flush afterwards: a grant that nobody waits for is released. An error says
  // how the broker broke the protocol.
  [[nodiscard]] absl::Status OnAnswer(v1::BrokerMessage message,
                                      uint64_t reader);
  [[nodiscard]] absl::Status OnSlabs(const v1::Slabs& slabs,
                                     std::vector<base::UniqueFd> fds,
                                     uint64_t reader);

  std::optional<v1::ClientMessage> NextToWrite() override;
  void Rewind() override;
  bool IsAwaited() override;

 private:
  struct Call;
  struct Step;

  absl::StatusOr<Answer> Wait(v1::ClientMessage message, Call& call);
  absl::StatusOr<Answer> AwaitAnswer(Call& call);
  Step NextStep(Call& call);
  void Carry(Call& call, Step& step);
  void WaitAtSocket(Call& call);
  [[nodiscard]] absl::Status NoAnswer(const Call& call) const;

  const ForkGuard fork_guard_;
  const absl::Duration answer_timeout_;
  StreamChannel& stream_;
  HandleChannel& handles_;
  Seats& seats_;
  BusyWait busy_wait_;

  mutable base::Mutex mu_;
  RequestTable table_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Call*> waiting_ ABSL_GUARDED_BY(mu_);
  // Of what was asked for ahead and not taken yet.
  std::map<uint64_t, Clock::time_point> deadlines_ ABSL_GUARDED_BY(mu_);
  absl::Status over_ ABSL_GUARDED_BY(mu_);  // OK while the session lives
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_CALLS_H_
