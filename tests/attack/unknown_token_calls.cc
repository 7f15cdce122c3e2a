// Calls with tokens that no session has, and whose refusals nobody reads.
#include <random>

#include "tests/attack/attack.h"
#include "tests/attack/http_flood.h"
#include "tests/attack/http_frames.h"

namespace gmb::attack {

absl::Status UnknownTokenCalls(Attack& attack) {
  std::mt19937 random(std::random_device{}());
  HttpFlood flood;
  flood.next = [&](HttpConnection& connection, const std::string&) {
    std::string guess(16, '\0');
    for (char& byte : guess) byte = static_cast<char>(random());
    return Frame(FrameType::kHeaders, kEndHeaders, connection.NextStream(),
                 CallHeaders(kSessionMethod, guess));
  };
  Run(flood, attack);
  return absl::OkStatus();
}

}  // namespace gmb::attack
