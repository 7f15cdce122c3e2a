#ifndef GMB_TESTS_BROKER_GATEWAY_FRAMES_H_
#define GMB_TESTS_BROKER_GATEWAY_FRAMES_H_

#include <cstdint>
#include <string>

#include "broker/gateway/frame_scanner.h"

namespace gmb::broker {

inline const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// One HTTP/2 frame, as bytes.
inline std::string Frame(uint8_t type, uint8_t flags, uint32_t stream,
                         uint32_t length) {
  std::string frame;
  for (const int shift : {16, 8, 0})
    frame.push_back(static_cast<char>(length >> shift));
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0})
    frame.push_back(static_cast<char>(stream >> shift));
  return frame + std::string(length, '\x5a');
}

inline std::string Headers(uint32_t stream, uint32_t length = 40) {
  return Frame(FrameHeader::kHeaders, FrameHeader::kEndHeaders, stream, length);
}

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_GATEWAY_FRAMES_H_
