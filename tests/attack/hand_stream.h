#ifndef GMB_TESTS_ATTACK_HAND_STREAM_H_
#define GMB_TESTS_ATTACK_HAND_STREAM_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "gmb/v1/session.pb.h"
#include "tests/attack/http_connection.h"
#include "tests/attack/http_frames.h"

namespace gmb::attack {

// The session stream over HTTP/2 by hand, for attacks that need a lease. Every
// call waits for at most the patience of an attacker.
class HandStream {
 public:
  // Connects to `socket_dir`'s gmb.sock and opens the call with that token.
  [[nodiscard]] bool Open(const std::string& socket_dir,
                          const std::string& token);
  [[nodiscard]] bool is_open() const { return connection_.is_open(); }
  void Close() { connection_.Close(); }
  [[nodiscard]] int fd() const { return connection_.fd(); }
  // As Open, on a connection that another stream has made, and no longer uses.
  // Its calls so far had streams before `next_stream`.
  void OpenOn(base::UniqueFd connection, uint32_t next_stream,
              const std::string& token);
  // Takes an open connection over as it is: a new call on it.
  void OpenCall(const std::string& token);

  // Under a new id, which it returns; 0: the stream is over.
  uint64_t Send(v1::ClientMessage message);
  // The next message that comes within this time.
  std::optional<v1::BrokerMessage> Receive(absl::Duration patience);
  // The answer to that id. Others are kept for Receive.
  std::optional<v1::BrokerMessage> Answer(uint64_t id, absl::Duration patience);
  std::optional<v1::BrokerMessage> Ask(v1::ClientMessage message,
                                       absl::Duration patience) {
    return Answer(Send(std::move(message)), patience);
  }

 private:
  bool Flush(absl::Duration patience);
  // False when nothing came in time, or the stream is over.
  bool ReadMore(absl::Time deadline);
  void TakeFrames();
  void Take(const ReceivedFrame& frame);
  void TakeMessages();

  HttpConnection connection_;
  uint32_t stream_ = 0;
  uint64_t last_id_ = 0;
  std::string frames_;    // not parsed yet
  std::string messages_;  // what DATA frames held, not parsed yet
  std::deque<v1::BrokerMessage> received_;
};

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_HAND_STREAM_H_
