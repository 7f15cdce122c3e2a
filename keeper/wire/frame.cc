// Between broker and keeper: the frame around each message.
#include "keeper/wire/frame.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "keeper/wire/bytes.h"

namespace gmb::keeper {
namespace {

constexpr uint32_t kMagic = 0x4b424d47;  // "GMBK"
constexpr size_t kHeaderBytes = 16;

}  // namespace

std::string Encode(const Frame& frame) {
  std::string packet = ByteWriter()
                           .Number(kMagic)
                           .Number(static_cast<uint16_t>(frame.kind))
                           .Number(uint16_t{0})
                           .Number(frame.call)
                           .Number(static_cast<uint32_t>(frame.body.size()))
                           .Take();
  packet += frame.body;
  return packet;
}

absl::StatusOr<Frame> Decode(absl::string_view packet) {
  ByteReader reader(packet);
  const auto magic = reader.Number<uint32_t>();
  Frame frame;
  frame.kind = static_cast<Kind>(reader.Number<uint16_t>());
  const auto reserved = reader.Number<uint16_t>();
  frame.call = reader.Number<uint32_t>();
  const auto body_bytes = reader.Number<uint32_t>();
  if (!reader.ok() || magic != kMagic) {
    return absl::InvalidArgumentError(
        "this is no frame of a keeper's protocol: is the socket a keeper's?");
  }
  if (reserved != 0 || packet.size() > kMaxFrameBytes ||
      packet.size() - kHeaderBytes != body_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a frame of a keeper's protocol is damaged: ", packet.size(),
        " bytes, and it says that its body has ", body_bytes));
  }
  frame.body = std::string(packet.substr(kHeaderBytes));
  return frame;
}

}  // namespace gmb::keeper
