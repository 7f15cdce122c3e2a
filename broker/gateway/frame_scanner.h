#ifndef GMB_BROKER_GATEWAY_FRAME_SCANNER_H_
#define GMB_BROKER_GATEWAY_FRAME_SCANNER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gmb::broker {

// The nine bytes in front of every HTTP/2 frame (RFC 9113, section 4.1).
struct FrameHeader {
  enum Type : uint8_t {
    kData = 0,
    kHeaders = 1,
    kPriority = 2,
    kRstStream = 3,
    kSettings = 4,
    kPushPromise = 5,
    kPing = 6,
    kGoAway = 7,
    kWindowUpdate = 8,
    kContinuation = 9,
  };
  static constexpr uint8_t kEndStream = 0x1;   // of DATA and HEADERS
  static constexpr uint8_t kEndHeaders = 0x4;  // of HEADERS and CONTINUATION

  uint32_t length = 0;  // of the payload, in bytes
  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t stream = 0;
};

// Finds the frame headers in one direction of an HTTP/2 connection, whose bytes
// come in pieces of any size. It never looks at a payload. A value.
class FrameScanner {
 public:
  using OnFrame = absl::FunctionRef<absl::Status(const FrameHeader&)>;

  // Calls `on_frame` for each header that is complete with these bytes, in
  // order; its first error ends the scan and is returned.
  absl::Status Scan(absl::string_view bytes, OnFrame on_frame);
  // How many of these bytes, which come next, are before the first frame of
  // that type. All of them, if none of them ends the header of one.
  [[nodiscard]] size_t BytesBefore(uint8_t type, absl::string_view bytes) const;
  // The frame that the last bytes were of goes on.
  [[nodiscard]] bool within_frame() const { return have_ > 0 || payload_ > 0; }

 private:
  static constexpr size_t kHeaderBytes = 9;

  std::array<uint8_t, kHeaderBytes> header_{};
  size_t have_ = 0;       // bytes of the header that came so far
  uint32_t payload_ = 0;  // bytes of the payload that are still to come
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_GATEWAY_FRAME_SCANNER_H_
