#ifndef GMB_TESTS_ATTACK_HTTP_FRAMES_H_
#define GMB_TESTS_ATTACK_HTTP_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace gmb::attack {

// HTTP/2 by hand (RFC 9113, RFC 7541): what an attack needs of it, and all that
// it forbids.
enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
inline constexpr uint8_t kAck = 1;        // of SETTINGS and PING
inline constexpr uint8_t kEndStream = 1;  // of DATA and HEADERS
inline constexpr uint8_t kEndHeaders = 4;

inline constexpr size_t kFrameHeaderBytes = 9;
// The largest frame that a peer takes unless it says otherwise.
inline constexpr size_t kMostFrameBytes = 16'384;

[[nodiscard]] std::string Frame(FrameType type, uint8_t flags, uint32_t stream,
                                absl::string_view payload = {});

struct ReceivedFrame {
  FrameType type;
  uint8_t flags;
  uint32_t stream;
  absl::string_view payload;
};
// Takes the frame in front of `bytes`; none: it is not whole yet.
[[nodiscard]] std::optional<ReceivedFrame> TakeFrame(absl::string_view* bytes);

[[nodiscard]] std::string BigEndian(uint64_t value, int bytes);
// At most 8 bytes.
[[nodiscard]] uint64_t ReadBigEndian(absl::string_view bytes);

// The preface and empty settings: how every connection starts.
[[nodiscard]] std::string Opening();

// A header field that no table keeps.
[[nodiscard]] std::string Field(absl::string_view name,
                                absl::string_view value);
// The length of a string in HPACK.
[[nodiscard]] std::string Length(uint64_t bytes);

// The header block of a gRPC call; `token`: as gmb-session-bin.
[[nodiscard]] std::string CallHeaders(absl::string_view method,
                                      absl::string_view token);
inline constexpr char kSessionMethod[] = "/gmb.v1.SessionService/Session";

// A message of a gRPC call as a DATA frame has it, one of several or alone.
[[nodiscard]] std::string MessageBytes(absl::string_view bytes);
// Takes the message in front of `bytes`; none: it is not whole yet.
[[nodiscard]] std::optional<absl::string_view> TakeMessage(
    absl::string_view* bytes);
// A DATA frame of one message.
[[nodiscard]] std::string Message(uint32_t stream, absl::string_view bytes);

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_HTTP_FRAMES_H_
