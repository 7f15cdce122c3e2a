#ifndef GMB_TESTS_CLIENT_FAKE_BROKER_H_
#define GMB_TESTS_CLIENT_FAKE_BROKER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "device/allocator.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.pb.h"
#include "grpcpp/support/status.h"
#include "ipc/gate_page.h"
#include "ipc/listener.h"
#include "ipc/seqpacket.h"
#include "ipc/wakeup.h"

namespace grpc {
class Server;
class ServerContext;
template <class W, class R>
class ServerReaderWriter;
}  // namespace grpc

namespace gmb::test {

// A broker in few lines, with the two real sockets and real sealed memory,
// that behaves well until a test tells it not to. It has no quotas: it grants
// until its memory is gone. Thread-safe.
class FakeBroker final {
 public:
  static constexpr uint64_t kMiB = uint64_t{1} << 20;
  static constexpr uint64_t kSharedBytes = 36 * kMiB;  // 5 slabs, 2 frames
  static constexpr char kSharedByte = 's';

  struct Options {
    uint64_t capacity_bytes = 256 * kMiB;
    uint64_t slab_bytes = 8 * kMiB;
    int slabs_in_frame = 3;  // small, so that leases take several frames
    std::string program = "fake";
    uint32_t gate_layout = 1;  // 0: no gate; another: a page that is none
    // Streams may be packets; else they are gRPC's alone, as with a broker from
    // before there were others, or where GMB_FAKE_BROKER_GRPC is set.
    bool takes_packets = !OnlyGrpc();
  };

  static bool OnlyGrpc();

  // Serves in `dir` from now on, or throws std::runtime_error.
  explicit FakeBroker(const std::string& dir) : FakeBroker(dir, Options()) {}
  FakeBroker(const std::string& dir, Options options);
  FakeBroker(const FakeBroker&) = delete;
  FakeBroker& operator=(const FakeBroker&) = delete;
  ~FakeBroker();

  // --- To misbehave.

  // Called with every message of a stream instead of Serve().
  using MessageHandler = std::function<void(const v1::ClientMessage&)>;
  void OnMessage(MessageHandler handler);
  // Called with a fresh connection instead of greeting it; it is closed
  // afterwards.
  using GreetHandler = std::function<void(ipc::SeqpacketSocket&)>;
  void OnGreet(GreetHandler handler);
  // New streams end with this at once. OK: they are served again.
  void RefuseStreams(grpc::Status status);

  // --- As if it died and another one took its sessions over: their handle
  // sockets stay, and nobody listens for streams until ComeBack().
  void GoAway();
  // Frames are numbered anew, and it knows no answers that were given before.
  // `takes_packets`: it may know less than the one before.
  void ComeBack(bool takes_packets = true);

  // --- Acts of a broker: to the session whose message is being handled on
  // this thread, otherwise to the newest.

  // Answers well: grants, releases, reports. Repeated ids are answered alike.
  void Serve(const v1::ClientMessage& message);
  void Say(const v1::BrokerMessage& message);
  void SendFrame(const v1::BrokerFrame& frame, const std::vector<int>& fds);
  void SendBytes(const std::string& bytes, const std::vector<int>& fds);
  // Creates the slabs of an Acquire, or of an Attach (kSharedBytes, full of
  // kSharedByte), sends them, and returns the grant that is due.
  v1::BrokerMessage MakeLease(const v1::ClientMessage& request,
                              bool send = true);
  // Says Evict{lease, move}.
  void Evict(uint64_t lease_id, uint64_t move);
  // Destroys the slabs of a lease that was evicted.
  void DropSlabs(uint64_t lease_id);
  // Makes slabs full of `fill` for the Map of `move`, sends them, and returns
  // the Map that is due.
  v1::BrokerMessage SendSlabs(uint64_t lease_id, uint64_t move, uint64_t bytes,
                              char fill);
  // Answers a request with an error.
  void Refuse(const v1::ClientMessage& request, const absl::Status& why);
  void BreakStream();
  void HangUp();

  // --- To look at.

  [[nodiscard]] const std::string& dir() const { return dir_; }

  // The gate of the newest session. Throws when it has none.
  ipc::GateCells& gate();
  // The Unmapped and Mapped with this move that came.
  std::vector<v1::ClientMessage> Moved(uint64_t move) const;

  // Waits until `done` holds; false after 10 s. It is looked at again
  // whenever the broker has received something.
  bool WaitUntil(const std::function<bool()>& done);
  // All that came on the streams of all sessions, in order.
  std::vector<v1::ClientMessage> messages() const;
  // How many came of a kind.
  int Count(v1::ClientMessage::KindCase kind) const;
  int streams() const { return streams_; }
  // Streams of packets that were asked for while it was away.
  int turned_away() const { return turned_away_; }
  int packet_streams() const { return packet_streams_; }  // of those
  int leases() const;
  int open_sessions() const { return open_sessions_; }
  int acknowledged() const { return acknowledged_; }
  // Bytes that nobody leases, maps or holds.
  uint64_t FreeBytes() const;

 private:
  class Service;  // hands the streams on; gRPC's headers stay out of this one

  // The newest stream of a session, of either kind.
  struct Stream {
    const void* name;
    std::function<void(const v1::BrokerMessage&)> write;
    std::function<void()> end;
  };
  // A session, as the broker has it. Guarded by mu_, but for the socket.
  struct Peer {
    uint64_t id;
    std::string token;
    ipc::SeqpacketSocket socket;
    std::optional<Stream> stream{};
    std::optional<ipc::GatePage> gate = std::nullopt;
    uint64_t last_frame = 0;
    std::map<uint64_t, v1::BrokerMessage> answers{};
    std::map<uint64_t, std::vector<device::SlabKey>> leases{};
  };

  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::BrokerMessage, v1::ClientMessage>* stream);
  void StartServer();
  void Accept();
  void Converse(ipc::SeqpacketSocket socket);
  std::shared_ptr<Peer> Greet(ipc::SeqpacketSocket socket);
  std::shared_ptr<Peer> Welcome(ipc::SeqpacketSocket socket,
                                const v1::Hello& hello);
  void SessionByPackets(ipc::SeqpacketSocket socket, const std::string& token);
  // The peer whose stream it is from now on, or why it is refused.
  absl::StatusOr<std::shared_ptr<Peer>> BeginStream(const std::string& token,
                                                    Stream stream);
  void EndStream(Peer* peer, const void* stream);
  void Hear(const v1::ClientMessage& message);
  void ReadAcks(Peer& peer);
  void EndSession(const std::shared_ptr<Peer>& peer);
  v1::BrokerMessage Answer(const v1::ClientMessage& message);
  v1::BrokerMessage ReleaseLease(uint64_t lease_id);
  std::vector<std::pair<uint64_t, base::UniqueFd>> MakeSlabs(uint64_t lease_id,
                                                             uint64_t bytes);
  static void FillSlab(const base::UniqueFd& fd, uint64_t bytes, char fill);
  // Sends slabs in frames of Options::slabs_in_frame; `frame` has all but them.
  void SendInFrames(const v1::Slabs& frame,
                    std::vector<std::pair<uint64_t, base::UniqueFd>> slabs);
  std::shared_ptr<Peer> current() const;
  uint64_t granularity_bytes() const;

  const Options options_;
  const std::string dir_;
  std::unique_ptr<device::Allocator> allocator_ ABSL_GUARDED_BY(mu_);
  std::optional<ipc::Listener> listener_;
  std::optional<ipc::Wakeup> stop_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::thread acceptor_;

  mutable base::Mutex mu_;
  mutable base::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool away_ ABSL_GUARDED_BY(mu_) = false;
  bool takes_packets_ ABSL_GUARDED_BY(mu_);
  MessageHandler on_message_ ABSL_GUARDED_BY(mu_);
  GreetHandler on_greet_ ABSL_GUARDED_BY(mu_);
  grpc::Status refuse_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::shared_ptr<Peer>> peers_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Peer> current_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::ClientMessage> messages_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> connections_ ABSL_GUARDED_BY(mu_);
  uint64_t last_session_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t last_lease_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<int> streams_ = 0;
  std::atomic<int> packet_streams_ = 0;
  std::atomic<int> turned_away_ = 0;
  std::atomic<int> open_sessions_ = 0;
  std::atomic<int> acknowledged_ = 0;
};

}  // namespace gmb::test

#endif  // GMB_TESTS_CLIENT_FAKE_BROKER_H_
