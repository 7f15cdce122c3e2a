#ifndef GMB_CLIENT_SESSION_STREAM_OWNER_H_
#define GMB_CLIENT_SESSION_STREAM_OWNER_H_

#include <optional>

#include "gmb/v1/session.pb.h"

namespace grpc {
class Status;
}  // namespace grpc

namespace gmb::internal {

// The session whose messages a Stream carries. Called from gRPC's threads,
// possibly with the stream's lock held, so never call a Stream under a lock
// that these take.
class StreamOwner {
 public:
  // The next message to write, if there is any.
  virtual std::optional<v1::ClientMessage> NextToWrite() = 0;
  virtual void OnMessage(v1::BrokerMessage message) = 0;
  // The last call; the stream may be destroyed from now on.
  virtual void OnStreamEnded(const grpc::Status& status) = 0;

 protected:
  ~StreamOwner() = default;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_STREAM_OWNER_H_
