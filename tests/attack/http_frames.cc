// HTTP/2 frames, written byte by byte.
#include "tests/attack/http_frames.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gmb::attack {
namespace {

// Entries of HPACK's static table, as the first byte of a field.
constexpr char kMethodPost = '\x83';
constexpr char kSchemeHttp = '\x86';

// In front of a gRPC message: a flag, and its length.
constexpr size_t kMessageHeaderBytes = 5;

}  // namespace

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    text.push_back(static_cast<char>(value >> shift));
  return text;
}

uint64_t ReadBigEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes)
    value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

std::optional<ReceivedFrame> TakeFrame(absl::string_view* bytes) {
  if (bytes->size() < kFrameHeaderBytes) return std::nullopt;
  const uint64_t payload = ReadBigEndian(bytes->substr(0, 3));
  if (bytes->size() - kFrameHeaderBytes < payload) return std::nullopt;
  const ReceivedFrame frame{
      .type = static_cast<FrameType>((*bytes)[3]),
      .flags = static_cast<uint8_t>((*bytes)[4]),
      .stream = static_cast<uint32_t>(ReadBigEndian(bytes->substr(5, 4))),
      .payload = bytes->substr(kFrameHeaderBytes, payload)};
  bytes->remove_prefix(kFrameHeaderBytes + payload);
  return frame;
}

std::string Frame(FrameType type, uint8_t flags, uint32_t stream,
                  absl::string_view payload) {
  std::string frame = BigEndian(payload.size(), 3);
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  absl::StrAppend(&frame, BigEndian(stream, 4), payload);
  return frame;
}

std::string Opening() {
  return absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                      Frame(FrameType::kSettings, 0, 0));
}

std::string Length(uint64_t bytes) {
  constexpr uint64_t kFits = 0x7f;
  if (bytes < kFits) return std::string(1, static_cast<char>(bytes));
  std::string text(1, static_cast<char>(kFits));
  for (bytes -= kFits; bytes >= 0x80; bytes >>= 7)
    text.push_back(static_cast<char>(0x80 | (bytes & 0x7f)));
  text.push_back(static_cast<char>(bytes));
  return text;
}

std::string Field(absl::string_view name, absl::string_view value) {
  return absl::StrCat(absl::string_view("\0", 1), Length(name.size()), name,
                      Length(value.size()), value);
}

std::string CallHeaders(absl::string_view method, absl::string_view token) {
  return absl::StrCat(std::string{kMethodPost, kSchemeHttp},
                      Field(":path", method), Field(":authority", "localhost"),
                      Field("te", "trailers"),
                      Field("content-type", "application/grpc"),
                      Field("gmb-session-bin", absl::Base64Escape(token)));
}

std::string MessageBytes(absl::string_view bytes) {
  return absl::StrCat(BigEndian(0, 1), BigEndian(bytes.size(), 4), bytes);
}

std::optional<absl::string_view> TakeMessage(absl::string_view* bytes) {
  if (bytes->size() < kMessageHeaderBytes) return std::nullopt;
  const uint64_t length = ReadBigEndian(bytes->substr(1, 4));
  if (bytes->size() - kMessageHeaderBytes < length) return std::nullopt;
  const absl::string_view message = bytes->substr(kMessageHeaderBytes, length);
  bytes->remove_prefix(kMessageHeaderBytes + length);
  return message;
}

std::string Message(uint32_t stream, absl::string_view bytes) {
  return Frame(FrameType::kData, 0, stream, MessageBytes(bytes));
}

}  // namespace gmb::attack
