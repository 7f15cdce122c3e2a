// Finds HTTP/2 frame headers in the bytes between a client and gRPC.
#include "broker/gateway/frame_scanner.h"

#include <algorithm>

namespace gmb::broker {

absl::Status FrameScanner::Scan(absl::string_view bytes, OnFrame on_frame) {
  while (!bytes.empty()) {
    const size_t skipped = std::min<size_t>(payload_, bytes.size());
    payload_ -= static_cast<uint32_t>(skipped);
    bytes.remove_prefix(skipped);
    const size_t taken = std::min(kHeaderBytes - have_, bytes.size());
    std::copy_n(bytes.begin(), taken, header_.begin() + have_);
    have_ += taken;
    bytes.remove_prefix(taken);
    if (have_ < kHeaderBytes) break;
    have_ = 0;
    const FrameHeader frame{
        .length =
            uint32_t{header_[0]} << 16 | uint32_t{header_[1]} << 8 | header_[2],
        .type = header_[3],
        .flags = header_[4],
        .stream = (uint32_t{header_[5]} << 24 | uint32_t{header_[6]} << 16 |
                   uint32_t{header_[7]} << 8 | header_[8]) &
                  0x7fffffff};
    payload_ = frame.length;
    if (absl::Status judged = on_frame(frame); !judged.ok()) return judged;
  }
  return absl::OkStatus();
}

size_t FrameScanner::BytesBefore(uint8_t type, absl::string_view bytes) const {
  FrameScanner ahead = *this;
  bool found = false;
  const auto look = [&](const FrameHeader& frame) {
    found = frame.type == type;
    return absl::OkStatus();
  };
  for (size_t at = 0; at < bytes.size();) {
    const size_t piece = std::min(ahead.payload_ + kHeaderBytes - ahead.have_,
                                  bytes.size() - at);
    ahead.Scan(bytes.substr(at, piece), look).IgnoreError();  // it judges none
    at += piece;
    if (found) return at - std::min(at, kHeaderBytes);
  }
  return bytes.size();
}

}  // namespace gmb::broker
