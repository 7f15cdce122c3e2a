#ifndef GMB_TESTS_BROKER_SERVER_HANDLE_SERVER_FIXTURE_H_
#define GMB_TESTS_BROKER_SERVER_HANDLE_SERVER_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "broker/server/handle_frames.h"
#include "broker/server/handle_server.h"
#include "gmb/v1/handle.pb.h"
#include "ipc/gate_page.h"
#include "ipc/seqpacket.h"
#include "tests/ipc/temporary_directory.h"

namespace gmb::broker {

inline constexpr absl::Duration kLong = absl::Seconds(30);

// Opens and closes sessions like the core, with real outboxes, and remembers
// what it was asked.
class FakeCore {
 public:
  SessionCalls Calls() {
    return {
        .open = [this](const PeerIdentity& peer) { return Open(peer); },
        .close = [this](uint64_t session,
                        std::string_view reason) { Close(session, reason); },
        .keep = keep_};
  }
  // Before Calls.
  void KeepWith(decltype(SessionCalls::keep) keep) { keep_ = std::move(keep); }
  // A session of the broker before this one, whose frames were below
  // `first_frame`.
  OpenedSession Adopt(uint64_t session, uint64_t first_frame) {
    OpenedSession opened;
    opened.id = session;
    opened.outbox = std::make_shared<Outbox>();
    opened.outbox->IgnoreAcksBelow(first_frame);
    const base::MutexLock lock(&mu_);
    last_ = std::max(last_, session);
    outboxes_[session] = opened.outbox;
    return opened;
  }

  void RefuseWith(const absl::Status& status) {
    const base::MutexLock lock(&mu_);
    refusal_ = status;
  }
  // As the real core gives each session of a tenant.
  void GiveGatePages() {
    const base::MutexLock lock(&mu_);
    gives_gate_pages_ = true;
  }
  // Called at the next session's opening, on the server's thread.
  void AtNextOpen(std::function<void()> hook) {
    const base::MutexLock lock(&mu_);
    at_open_ = std::move(hook);
  }
  // Called first at each closing, on the server's thread.
  void AtEachClose(std::function<void(uint64_t session)> hook) {
    const base::MutexLock lock(&mu_);
    at_close_ = std::move(hook);
  }
  std::shared_ptr<Outbox> OutboxOf(uint64_t session) {
    const base::MutexLock lock(&mu_);
    return outboxes_.at(session);
  }
  PeerIdentity PeerOf(uint64_t session) {
    const base::MutexLock lock(&mu_);
    return peers_.at(session);
  }
  // Why the handle server closed the session; waits for it.
  std::string AwaitClosed(uint64_t session) {
    const auto deadline =
        std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(kLong);
    const base::MutexLock lock(&mu_);
    while (reasons_[session].empty()) {
      if (!closed_.WaitUntil(&mu_, deadline)) return "still open";
    }
    return reasons_[session].front();
  }
  size_t TimesClosed(uint64_t session) {
    const base::MutexLock lock(&mu_);
    return reasons_[session].size();
  }

 private:
  absl::StatusOr<OpenedSession> Open(const PeerIdentity& peer) {
    std::function<void()> hook;
    {
      const base::MutexLock lock(&mu_);
      hook = std::exchange(at_open_, nullptr);
    }
    if (hook) hook();
    const base::MutexLock lock(&mu_);
    if (!refusal_.ok()) return refusal_;
    OpenedSession opened;
    opened.id = ++last_;
    opened.token = std::string(16, 't');
    opened.tenant = peer.tenant_directory;
    opened.outbox = std::make_shared<Outbox>();
    if (gives_gate_pages_) {
      absl::StatusOr<base::UniqueFd> page = ipc::CreateGatePage();
      if (!page.ok()) return page.status();
      opened.gate_page = *std::move(page);
    }
    outboxes_[opened.id] = opened.outbox;
    peers_[opened.id] = peer;
    peers_[opened.id].pidfd = nullptr;  // a fd that the server is asked for
    return opened;
  }
  void Close(uint64_t session, std::string_view reason) {
    std::function<void(uint64_t session)> hook;
    {
      const base::MutexLock lock(&mu_);
      hook = at_close_;
    }
    if (hook) hook(session);
    std::shared_ptr<Outbox> outbox = OutboxOf(session);
    outbox->Close(absl::UnavailableError(std::string(reason)));
    const base::MutexLock lock(&mu_);
    outboxes_.erase(session);
    reasons_[session].emplace_back(reason);
    closed_.NotifyAll();
  }

  decltype(SessionCalls::keep) keep_ = nullptr;
  base::Mutex mu_;
  base::CondVar closed_;
  std::function<void()> at_open_ ABSL_GUARDED_BY(mu_);
  std::function<void(uint64_t session)> at_close_ ABSL_GUARDED_BY(mu_);
  absl::Status refusal_ ABSL_GUARDED_BY(mu_);
  bool gives_gate_pages_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, std::shared_ptr<Outbox>> outboxes_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, PeerIdentity> peers_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, std::vector<std::string>> reasons_ ABSL_GUARDED_BY(mu_);
};

inline absl::StatusOr<v1::BrokerFrame> ReceiveFrame(
    ipc::SeqpacketSocket* socket) {
  const absl::StatusOr<ipc::Packet> packet = socket->Receive(kLong);
  if (!packet.ok()) return packet.status();
  v1::BrokerFrame frame;
  if (!frame.ParseFromString(packet->bytes))
    return absl::DataLossError("garbage");
  return frame;
}

inline absl::Status SendFrame(ipc::SeqpacketSocket* socket,
                              const v1::ClientFrame& frame,
                              bool with_credentials = false) {
  return socket->Send(frame.SerializeAsString(), {}, with_credentials, kLong);
}

inline v1::ClientFrame HelloTo(const v1::BrokerFrame& challenge) {
  v1::ClientFrame frame;
  frame.mutable_hello()->set_protocol_version(kHandleProtocolVersion);
  frame.mutable_hello()->set_nonce(challenge.challenge().nonce());
  frame.mutable_hello()->set_program("tester");
  return frame;
}

inline v1::ClientFrame AckOf(uint64_t frame_id) {
  v1::ClientFrame frame;
  frame.mutable_slabs_ack()->set_frame_id(frame_id);
  return frame;
}

// The broker's answer to a proper greeting on a connected socket.
inline absl::StatusOr<v1::BrokerFrame> Greet(ipc::SeqpacketSocket* socket) {
  const absl::StatusOr<v1::BrokerFrame> challenge = ReceiveFrame(socket);
  if (!challenge.ok() || !challenge->has_challenge()) return challenge;
  const absl::Status sent = SendFrame(socket, HelloTo(*challenge), true);
  if (!sent.ok()) return sent;
  return ReceiveFrame(socket);
}

inline SlabFrame FrameOf(uint64_t frame_id, size_t fds) {
  SlabFrame frame;
  frame.frame_id = frame_id;
  v1::BrokerFrame wire;
  wire.mutable_slabs()->set_frame_id(frame_id);
  frame.bytes = wire.SerializeAsString();
  for (size_t i = 0; i < fds; ++i) {
    frame.handles.push_back(std::make_shared<const device::ShareableHandle>(
        base::UniqueFd(::dup(STDERR_FILENO))));
  }
  return frame;
}

inline void Push(Outbox* outbox, SlabFrame frame) {
  outbox->Push(std::move(frame));
  outbox->Pump();
}

// A peer with a session.
struct Peer {
  ipc::SeqpacketSocket socket;
  uint64_t session;
};

class HandleServerTest : public ::testing::Test {
 protected:
  void Start(const HandleServerOptions& options = {}) {
    absl::StatusOr<std::unique_ptr<ipc::FdDisposer>> disposer =
        ipc::FdDisposer::Start();
    ASSERT_TRUE(disposer.ok()) << disposer.status();
    disposer_ = *std::move(disposer);
    absl::StatusOr<std::unique_ptr<HandleServer>> server =
        HandleServer::Start(options, core_.Calls(), disposer_.get());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    ASSERT_TRUE(server_->AddListener(path_, 0600, Origin::kShared).ok());
  }

  ipc::SeqpacketSocket Connect() { return Connect(path_); }
  static ipc::SeqpacketSocket Connect(const std::string& path) {
    absl::StatusOr<ipc::SeqpacketSocket> socket =
        ipc::SeqpacketSocket::Connect(path, kLong);
    EXPECT_TRUE(socket.ok()) << socket.status();
    return *std::move(socket);
  }
  Peer NewPeer() { return NewPeer(path_); }
  static Peer NewPeer(const std::string& path) {
    ipc::SeqpacketSocket socket = Connect(path);
    const absl::StatusOr<v1::BrokerFrame> welcome = Greet(&socket);
    EXPECT_TRUE(welcome.ok()) << welcome.status();
    EXPECT_TRUE(welcome.ok() && welcome->has_welcome());
    return {std::move(socket),
            welcome.ok() ? welcome->welcome().session_id() : 0};
  }
  static void ExpectHungUp(ipc::SeqpacketSocket* socket) {
    EXPECT_EQ(socket->Receive(kLong).status().code(),
              absl::StatusCode::kUnavailable);
  }

  const gmb::testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.File("handle.sock");
  // Before all that close peers' sockets. Started with the server: a test may
  // fork before, and a child has none of its threads.
  std::unique_ptr<ipc::FdDisposer> disposer_;
  FakeCore core_;
  std::unique_ptr<HandleServer> server_;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_SERVER_HANDLE_SERVER_FIXTURE_H_
