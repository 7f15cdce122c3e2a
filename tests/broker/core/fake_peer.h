#ifndef GMB_TESTS_BROKER_CORE_FAKE_PEER_H_
#define GMB_TESTS_BROKER_CORE_FAKE_PEER_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "broker/core/core.h"
#include "gmb/v1/handle.pb.h"
#include "ipc/gate_page.h"
#include "ipc/gate_word.h"

namespace gmb::broker {

// Seconds in which what is to come does, in an instrumented build on a busy
// machine, too.
inline constexpr int kPatience = 60;

// A session's other end inside the test's process: takes what the outbox sends
// on both sockets and acknowledges it, unless told not to.
class FakePeer : public StreamSink,
                 public FrameSender,
                 public std::enable_shared_from_this<FakePeer> {
 public:
  explicit FakePeer(Core* core) : core_(core) {}

  // Greets, and opens the stream.
  absl::Status Open(const PeerIdentity& peer) {
    absl::StatusOr<OpenedSession> opened = core_->OpenSession(peer);
    if (!opened.ok()) return opened.status();
    session = opened->id;
    token = opened->token;
    outbox = opened->outbox;
    absl::StatusOr<ipc::GatePage> page =
        ipc::GatePage::Map(opened->gate_page.get());
    if (!page.ok()) return page.status();
    gate = std::make_unique<ipc::GatePage>(*std::move(page));
    outbox->AttachSocket(shared_from_this());
    return core_->AttachStream(session, shared_from_this()).status();
  }

  uint64_t Send(v1::ClientMessage message) {
    message.set_request_id(++last_request);
    core_->HandleMessage(session, message);
    return last_request;
  }
  uint64_t Acquire(uint64_t bytes, int wait_seconds = 0) {
    v1::ClientMessage message;
    message.mutable_acquire()->set_bytes(bytes);
    message.mutable_acquire()->mutable_wait()->set_seconds(wait_seconds);
    return Send(message);
  }
  uint64_t Release(uint64_t lease) {
    v1::ClientMessage message;
    message.mutable_release()->set_lease_id(lease);
    return Send(message);
  }

  // --- The gate, as an honest client would move it.
  uint64_t SetGate(bool on) {
    v1::ClientMessage message;
    message.mutable_set_gate()->set_on(on);
    return Send(message);
  }
  void SetWord(ipc::GateWord word) { gate->cells().word.store(word.bits()); }
  [[nodiscard]] ipc::GateWord Word() const {
    return ipc::LookAtGate(gate->cells());
  }
  void Park(uint64_t epoch = 1) {
    SetWord(ipc::GateWord(ipc::GateState::kParked, 0, epoch));
  }
  // Writes the times of its last use.
  void Used(uint64_t woken_at_ns, uint64_t left_at_ns) {
    gate->cells().woken_at_ns.store(woken_at_ns);
    gate->cells().left_at_ns.store(left_at_ns);
  }
  uint64_t Restore(int wait_seconds) {
    v1::ClientMessage message;
    message.mutable_restore()->mutable_wait()->set_seconds(wait_seconds);
    return Send(message);
  }
  void Mapped(uint64_t lease, uint64_t move = 0) {
    v1::ClientMessage message;
    message.mutable_mapped()->set_lease_id(lease);
    message.mutable_mapped()->set_move(move);
    Send(message);
  }
  void Unmapped(uint64_t lease, uint64_t move) {
    v1::ClientMessage message;
    message.mutable_unmapped()->set_lease_id(lease);
    message.mutable_unmapped()->set_move(move);
    Send(message);
  }
  // The newest Evict, or Map, with a move above `move`.
  v1::Evict AwaitEvict(uint64_t move = 0) {
    return Await([move](const v1::BrokerMessage& m) {
             return m.has_evict() && m.evict().move() > move;
           })
        .evict();
  }
  v1::Map AwaitMap(uint64_t move = 0) {
    return Await([move](const v1::BrokerMessage& m) {
             return m.has_map() && m.map().move() > move;
           })
        .map();
  }

  // The answer of a request; Waiting is none. Empty after kPatience.
  v1::BrokerMessage Answer(uint64_t request) {
    return Await([request](const v1::BrokerMessage& m) {
      return m.request_id() == request && !m.has_waiting();
    });
  }
  template <typename Predicate>
  v1::BrokerMessage Await(Predicate wanted) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    base::MutexLock lock(&mu);
    while (true) {
      for (const v1::BrokerMessage& message : messages) {
        if (wanted(message)) return message;
      }
      if (std::chrono::steady_clock::now() > deadline) return {};
      changed.WaitUntil(&mu, deadline);
    }
  }

  bool Write(v1::BrokerMessage message) override {
    {
      base::MutexLock lock(&mu);
      messages.push_back(std::move(message));
      order.push_back("message");
      changed.NotifyAll();
    }
    outbox->OnWriteDone(this);
    return true;
  }
  void Close(const absl::Status& status) override {
    base::MutexLock lock(&mu);
    closed = status;
    changed.NotifyAll();
  }
  absl::StatusOr<bool> TrySend(const std::string& frame,
                               absl::Span<const int> fds) override {
    v1::BrokerFrame parsed;
    if (!parsed.ParseFromString(frame))
      return absl::InternalError("not a frame");
    {
      base::MutexLock lock(&mu);
      if (socket_full) return false;
      frames.push_back(parsed.slabs());
      fds_sent += fds.size();
      order.push_back("frame");
    }
    if (acknowledge) (void)outbox->OnAck(parsed.slabs().frame_id());
    return true;
  }
  void Hangup() override {
    base::MutexLock lock(&mu);
    hung_up = true;
  }

  uint64_t session = 0;
  std::string token;
  std::shared_ptr<Outbox> outbox;
  std::unique_ptr<ipc::GatePage> gate;
  uint64_t last_request = 0;
  bool acknowledge = true;

  base::Mutex mu;
  base::CondVar changed;
  std::vector<v1::BrokerMessage> messages;
  std::vector<v1::Slabs> frames;
  std::vector<std::string> order;
  size_t fds_sent = 0;
  bool socket_full = false;
  bool hung_up = false;
  absl::Status closed;

 private:
  Core* const core_;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_CORE_FAKE_PEER_H_
