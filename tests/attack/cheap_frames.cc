// Frames that nobody answers: each costs its sender a few bytes, and the broker
// a look.
#include "tests/attack/attack.h"
#include "tests/attack/http_flood.h"
#include "tests/attack/http_frames.h"

namespace gmb::attack {

absl::Status CheapFrames(Attack& attack) {
  constexpr auto kPriority = static_cast<FrameType>(2);
  constexpr auto kUnknown = static_cast<FrameType>(0xbe);
  std::string many;
  for (int i = 0; i < 256; ++i) {
    many += Frame(FrameType::kWindowUpdate, 0, 0, std::string("\0\0\0\1", 4));
    many += Frame(FrameType::kData, 0, 1);
    many += Frame(kPriority, 0, 1, std::string(5, '\0'));
    many += Frame(kUnknown, 0, 0, "x");
  }
  HttpFlood flood;
  flood.begin = [](HttpConnection& connection, const std::string& token) {
    return Frame(FrameType::kHeaders, kEndHeaders, connection.NextStream(),
                 CallHeaders(kSessionMethod, token));
  };
  flood.next = [&](HttpConnection&, const std::string&) { return many; };
  Run(flood, attack);
  return absl::OkStatus();
}

}  // namespace gmb::attack
