#ifndef GMB_TESTS_COMPONENT_RAW_SESSION_H_
#define GMB_TESTS_COMPONENT_RAW_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.pb.h"
#include "ipc/seqpacket.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace gmb::component {

inline constexpr char kTokenKey[] = "gmb-session-bin";

// A channel to a broker's gRPC socket that shares no connection with others.
[[nodiscard]] std::shared_ptr<grpc::Channel> OpenChannel(
    const std::string& socket_dir);

// The session stream, spoken by hand. Send and Receive may be used by one
// thread each.
class RawStream {
 public:
  // nullopt: without any token.
  RawStream(const std::string& socket_dir,
            const std::optional<std::string>& token);
  ~RawStream();

  bool Send(const v1::ClientMessage& message);
  // nullopt when the stream has ended.
  std::optional<v1::BrokerMessage> Receive();
  // The answer to that request; what comes before it is dropped.
  std::optional<v1::BrokerMessage> ReceiveAnswer(uint64_t request_id);
  // How it ended, in the form of the client library: GetErrorDetail reads it.
  absl::Status Finish();

 private:
  struct Call;  // gRPC's part, whose headers stay out of this one
  const std::unique_ptr<Call> call_;
  bool finished_ = false;
};

// The same as packets. To open it, and to send, never fails: the broker says
// what is wrong.
class RawPacketStream {
 public:
  RawPacketStream(const std::string& socket_dir, const std::string& token);

  // false: there is no room, or the broker has hung up.
  bool Send(const v1::ClientMessage& message);
  bool SendBytes(const std::string& bytes, const std::vector<int>& fds = {});
  // nullopt when the stream has ended.
  std::optional<v1::BrokerMessage> Receive();
  std::optional<v1::BrokerMessage> ReceiveAnswer(uint64_t request_id);
  // How it ended; UNAVAILABLE where the broker hung up without a word.
  absl::Status Finish();
  ipc::SeqpacketSocket& socket() { return socket_; }

 private:
  ipc::SeqpacketSocket socket_;
  std::optional<absl::Status> end_;
};

// A session that was greeted properly, and whose every later word is the
// test's.
struct RawSession {
  ipc::SeqpacketSocket socket;
  v1::Welcome welcome;

  static absl::StatusOr<RawSession> Open(const std::string& socket_dir,
                                         const std::string& tenant_token = "");
  [[nodiscard]] std::unique_ptr<RawStream> OpenStream(
      const std::string& socket_dir) const;
  // Receives one Slabs frame, keeps its fds in `fds` or closes them, and
  // acknowledges it.
  absl::StatusOr<v1::Slabs> TakeSlabs(
      std::vector<base::UniqueFd>* fds = nullptr);
  // OK when the broker hangs up, whatever it says before.
  absl::Status AwaitHangUp();
};

[[nodiscard]] v1::ClientMessage AcquireMessage(uint64_t id, uint64_t bytes);
[[nodiscard]] v1::ClientMessage ReleaseMessage(uint64_t id, uint64_t lease);
[[nodiscard]] v1::ClientFrame AckFrame(uint64_t frame_id);

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_RAW_SESSION_H_
