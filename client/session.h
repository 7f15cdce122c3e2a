#ifndef GMB_CLIENT_SESSION_H_
#define GMB_CLIENT_SESSION_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/fork_guard.h"
#include "client/gate/gate.h"
#include "client/gate/gate_owner.h"
#include "client/greeting.h"
#include "client/mapped_lease.h"
#include "client/mover.h"
#include "client/notifier.h"
#include "client/request_table.h"
#include "client/socket_dir.h"
#include "client/stream.h"
#include "client/trim_hook.h"
#include "gmb/options.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.grpc.pb.h"
#include "grpcpp/channel.h"
#include "ipc/gate_page.h"
#include "ipc/mutex.h"
#include "ipc/seqpacket.h"
#include "ipc/wakeup.h"

namespace gmb::internal {

// When the two parts of a lease came, for measurements.
struct Arrivals {
  std::chrono::steady_clock::time_point slabs{};
  std::chrono::steady_clock::time_point grant{};
};

// Maps the slabs of a lease whose grant is still on its way, on the thread
// that asks for it.
class EarlyMapping {
 public:
  // The request is on its way: do what needs no slabs.
  virtual void Prepare() = 0;
  virtual void Map(EarlySlabs slabs) = 0;
  // The grant did not come: unmap. The lease is given back afterwards.
  virtual void Undo() = 0;

 protected:
  ~EarlyMapping() = default;
};

// One session with a broker: both sockets, from the greeting to the hang-up.
// Shared by the Client and its leases; ends when the last of them lets go.
//
// Owns one thread, which reads the handle socket, acknowledges slabs, and
// opens the stream again when it broke. Acquires read the socket beside it.
// gRPC's threads bring the stream's messages. The gate's parker and the mover
// have threads too. Thread-safe. In a forked child
// only CheckAlive may be called and the object must not be destroyed.
class Session final : private StreamOwner,
                      private GateOwner,
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
  [[nodiscard]] bool InForkedChild() const { return fork_guard_.InChild(); }
  // OK, or why calls fail: forked, or over.
  [[nodiscard]] absl::Status CheckAlive() const;

  // Blocks until the lease is granted and all of its slabs are here. Whoever
  // gets it owes the broker Mapped or Release. `early` may be null; if it
  // was given slabs, those granted are without handles.
  [[nodiscard]] absl::StatusOr<Granted> Acquire(uint64_t bytes,
                                                const AcquireOptions& options,
                                                EarlyMapping* early = nullptr,
                                                Arrivals* arrivals = nullptr);
  // The same for a shared lease of the tenant; of the options' what names the
  // memory is not used. It is the session's own from now on.
  [[nodiscard]] absl::StatusOr<Granted> Attach(const std::string& name,
                                               const AcquireOptions& options,
                                               EarlyMapping* early = nullptr);
  [[nodiscard]] absl::Status DropShared(const std::string& name);
  // Tells the broker that the lease is mapped, soon. From now on the broker may
  // have it moved.
  void Mapped(uint64_t lease_id, std::shared_ptr<MappedLease> lease);
  // Before a lease is unmapped to be released.
  void StopMoving(uint64_t lease_id);
  // Tells the broker that the lease is unmapped, and waits for its answer. OK
  // when the session is over.
  [[nodiscard]] absl::Status Release(uint64_t lease_id);
  // The same, without waiting.
  void ReleaseLater(uint64_t lease_id);
  [[nodiscard]] absl::StatusOr<std::vector<QuotaView>> GetQuota();

  // The session's gate; where the broker gave none, one that only counts.
  [[nodiscard]] Gate& gate() { return *gate_; }
  [[nodiscard]] absl::Duration answer_timeout() const {
    return answer_timeout_;
  }
  // As the Client's calls of these names; they wait for the broker's answer.
  [[nodiscard]] absl::Status TurnGateOn(absl::Duration park_after,
                                        const std::string& group);
  [[nodiscard]] absl::Status TurnGateOff(absl::Duration wait);
  [[nodiscard]] absl::Status Seal(uint64_t lease_id);
  // Does not wait. The device's sum counts: of the application's, which has no
  // heap, and its heaps'.
  [[nodiscard]] absl::Status SetTrimmable(const std::string& device,
                                          uint64_t bytes,
                                          const void* heap = nullptr);
  [[nodiscard]] TrimHook& trim_hook() { return *trim_hook_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr absl::Duration kFirstBackoff = absl::Milliseconds(20);

  // Clamped, so that sums stay far from the clock's end.
  static std::chrono::nanoseconds ToNanoseconds(absl::Duration duration);

  // What a waiting call is to do next.
  struct Step {
    std::optional<absl::StatusOr<Answer>> result;
    std::optional<uint64_t> ahead;
    std::optional<EarlySlabs> slabs;
    bool undo = false;
    bool poke = false;
  };
  // A call that waits for an answer. Who asks for a lease waits for its slabs
  // itself, at the socket, so that no other thread has to wake it.
  struct Call {
    uint64_t id;
    Clock::time_point deadline;
    const AcquireOptions* lease = nullptr;  // of an Acquire or Attach
    EarlyMapping* early = nullptr;
    bool restore = false;
    std::optional<ipc::Wakeup> at_socket{};
    Arrivals arrivals{};
    bool mapped = false;  // `early` has the slabs
    bool cancelled = false;
    ipc::CondVar changed{};

    void Wake() {
      if (at_socket.has_value()) at_socket->Notify();
      changed.NotifyAll();
    }
  };

  Session(const ClientOptions& options, std::shared_ptr<Notifier> notifier,
          std::shared_ptr<TrimHook> trim_hook, SocketDir dir, Greeting greeting,
          ipc::GatePage page, ipc::Wakeup wakeup);

  absl::StatusOr<Answer> Ask(v1::ClientMessage message,
                             absl::Duration patience);
  absl::StatusOr<Answer> Ask(v1::ClientMessage message, Call& call);
  absl::StatusOr<Granted> AskForLease(v1::ClientMessage message,
                                      const AcquireOptions& options,
                                      absl::Duration wait, EarlyMapping* early,
                                      Arrivals* arrivals);
  Step NextStep(Call& call);
  void Carry(Call& call, Step& step);
  void WaitAtSocket(Call& call);
  absl::Status GiveUp(Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The session's thread.
  void Run();
  void WaitForEvent();
  void OpenStreamIfDue();
  void WriteIfDue();
  void AnswerTrims();
  // So that the broker takes back what it believes we hold; closes what it has
  // sent.
  void HangUp();

  // Whoever waits at the socket: the session's thread, and calls for leases.
  // `reader`: the call on this thread, or null.
  absl::Status ReceiveFrames(const Call* reader)
      ABSL_LOCKS_EXCLUDED(receive_mu_);
  absl::Status OnFrame(ipc::Packet packet, const Call* reader)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_mu_);

  // Calls made outside of the session's lock.
  void PokeStream();
  void CancelStream();
  // Ends the session: every call returns `why` from now on.
  void End(const absl::Status& why);
  void WakeCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::optional<v1::ClientMessage> NextToWrite() override;
  void OnMessage(v1::BrokerMessage message) override;
  void OnStreamEnded(const grpc::Status& status) override;
  absl::Status Notice(const v1::BrokerMessage& message);

  absl::Status Restore(Clock::time_point deadline) override;
  absl::Status Synchronize() override;
  absl::Status SetGate(bool on) ABSL_EXCLUSIVE_LOCKS_REQUIRED(switch_mu_);
  void SendGate(bool on) ABSL_EXCLUSIVE_LOCKS_REQUIRED(
      switch_mu_);  // without waiting for the answer
  void SendMoved(v1::ClientMessage answer) override;
  void MoverFailed(const absl::Status& why) override { End(why); }
  // Writes a message without an answer, unless the session is over.
  void Send(v1::ClientMessage message);

  const ForkGuard fork_guard_;
  const absl::Duration answer_timeout_;
  const std::shared_ptr<Notifier> notifier_;
  const std::shared_ptr<TrimHook> trim_hook_;
  const bool has_gate_;  // of the broker
  const SocketDir dir_;
  const v1::Welcome welcome_;
  ipc::Wakeup wakeup_;              // wakes the session's thread
  std::atomic<int> at_socket_ = 0;  // calls that want to wait there
  // One thread receives at a time, so that frames are taken in their order.
  // Taken before mu_.
  ipc::Mutex receive_mu_;
  ipc::SeqpacketSocket socket_;
  uint64_t last_frame_id_ ABSL_GUARDED_BY(receive_mu_) = 0;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::SessionService::Stub> stub_;

  mutable ipc::Mutex mu_;
  RequestTable table_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Call*> calls_ ABSL_GUARDED_BY(mu_);
  absl::Status over_ ABSL_GUARDED_BY(mu_);  // OK while the session lives
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  // The newest stream; replaced and destroyed by the session's thread and the
  // destructor, never on gRPC's threads.
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mu_);
  bool stream_ended_ ABSL_GUARDED_BY(mu_) = false;
  ipc::CondVar stream_changed_;
  absl::Status stream_error_
      ABSL_GUARDED_BY(mu_);  // of the last stream that broke
  absl::Duration backoff_ ABSL_GUARDED_BY(mu_) = kFirstBackoff;
  Clock::time_point reopen_at_ ABSL_GUARDED_BY(mu_);
  // When the session's thread writes what was left to it.
  std::optional<Clock::time_point> write_at_ ABSL_GUARDED_BY(mu_);

  // By device, and there by heap.
  std::map<std::string, std::map<const void*, uint64_t>> trimmable_
      ABSL_GUARDED_BY(mu_);

  ipc::Mutex switch_mu_;  // held while the gate is turned on or off
  std::string group_ ABSL_GUARDED_BY(switch_mu_);  // with the gate on
  // From here on: threads that use all of the above.
  Mover mover_;
  std::unique_ptr<Gate> gate_;
  std::thread thread_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_H_
