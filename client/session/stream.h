#ifndef GMB_CLIENT_SESSION_STREAM_H_
#define GMB_CLIENT_SESSION_STREAM_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "gmb/v1/session.pb.h"

namespace gmb::internal {

// The session whose messages a Stream carries. Called from any thread, possibly
// with a lock of the stream held, so never call a Stream under a lock that
// these take.
class StreamOwner {
 public:
  // The next message to write, if there is any.
  virtual std::optional<v1::ClientMessage> NextToWrite() = 0;
  // `reader`: the request whose call has read it on this thread, or 0.
  virtual void OnMessage(v1::BrokerMessage message, uint64_t reader) = 0;
  // The last call; the stream may be destroyed from now on. UNIMPLEMENTED: the
  // broker knows no streams of this kind.
  virtual void OnStreamEnded(absl::Status why) = 0;

 protected:
  ~StreamOwner() = default;
};

// One stream of a session, from its start to its end. Thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;

  // Call it once, always: only then the stream can end.
  virtual void Start() = 0;
  // The owner has something to write.
  virtual void Poke() = 0;
  // OnStreamEnded follows soon; where others read, with the next Receive.
  virtual void Cancel() = 0;
  // Takes what has come, unless threads of the stream's own do.
  virtual void Receive(uint64_t /*reader*/) {}
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_STREAM_H_
