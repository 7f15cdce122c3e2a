#ifndef GMB_BROKER_GATEWAY_FRAME_GUARD_H_
#define GMB_BROKER_GATEWAY_FRAME_GUARD_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "broker/doors/token_bucket.h"
#include "broker/gateway/frame_scanner.h"

namespace gmb::broker {

// Bounds what a tenant's client may do to gRPC's HTTP/2. No honest client comes
// near the bounds, which are judged by the frames' headers alone. gRPC has no
// bound of its own for the length of a header block, and none that holds for a
// client that does not acknowledge its settings. docs/protocol.md, section 5,
// has the figures.
// A value; one for each connection.
class FrameGuard {
 public:
  using Time = TokenBucket::Time;

  static constexpr uint32_t kMaxFrameBytes = 16 * 1024;  // HTTP/2's own default
  static constexpr uint32_t kMaxHeaderBlockBytes = 16 * 1024;
  static constexpr size_t kMaxContinuations = 16;
  static constexpr size_t kMaxStreams = 64;

  // Takes the client's next bytes, before gRPC sees any of them.
  // RESOURCE_EXHAUSTED: the bound that it broke; INVALID_ARGUMENT: it does not
  // speak HTTP/2.
  [[nodiscard]] absl::Status OnClientBytes(absl::string_view bytes, Time now);
  // Takes the bytes that gRPC answered.
  void OnServerBytes(absl::string_view bytes);

  // How many of the client's next bytes are before its next call.
  [[nodiscard]] size_t BytesBeforeCall(absl::string_view bytes) const;

  // Calls that the client began so far.
  [[nodiscard]] uint64_t calls() const { return calls_; }
  [[nodiscard]] size_t open_streams() const { return streams_.size(); }
  // Calls that the client began of late, faster than it may all the time.
  [[nodiscard]] double CallsOfBurst(Time now) const {
    return headers_.SpentOfBurst(now);
  }

 private:
  [[nodiscard]] absl::Status TakePreface(absl::string_view* bytes);
  [[nodiscard]] absl::Status OnClientFrame(const FrameHeader& frame, Time now);
  [[nodiscard]] absl::Status OnData(const FrameHeader& frame, Time now);
  [[nodiscard]] absl::Status OnHeaders(const FrameHeader& frame, Time now);
  [[nodiscard]] absl::Status OnBlock(const FrameHeader& frame);

  FrameScanner from_client_;
  FrameScanner from_server_;
  size_t preface_ = 0;  // bytes of it that came so far

  // The header block that is under way; stream 0: none.
  uint32_t block_stream_ = 0;
  uint64_t block_bytes_ = 0;
  size_t continuations_ = 0;
  absl::flat_hash_set<uint32_t> streams_;
  uint64_t calls_ = 0;

  TokenBucket headers_{80, 20};  // as many streams as may be open, and some
  TokenBucket resets_{80, 20};
  TokenBucket settings_{32, 2};
  // Some clients ping for each message that they read, to estimate bandwidth.
  // Few beyond that: a connection that ends with many unanswered ones costs
  // gRPC the square of their number.
  TokenBucket pings_{100, 20};
  TokenBucket window_updates_{10'000, 1000};
  // An honest client cuts a message wherever its window ends, which is anywhere
  // while the broker reads no further. gRPC's windows end once in hundreds of
  // messages: of 20,000 a second, which are all that are read, fewer than 30
  // have a piece that is short. So messages without answers come nowhere near.
  TokenBucket short_data_{2000, 200};
  // PRIORITY, GOAWAY, empty DATA and what HTTP/2 may have one day.
  TokenBucket others_{128, 20};
  // Pieces of a frame that come one by one.
  TokenBucket scraps_{2000, 100};
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_FRAME_GUARD_H_
