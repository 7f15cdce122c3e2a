// A ping with every message: as many as an honest client may send to measure
// what comes to it, but nothing comes.
#include "tests/attack/attack.h"
#include "tests/attack/http_flood.h"
#include "tests/attack/http_frames.h"

namespace gmb::attack {

absl::Status DataPings(Attack& attack) {
  std::string many;
  for (int i = 0; i < 256; ++i) {
    many += Message(1, "");
    many += Frame(FrameType::kPing, 0, 0, "12345678");
  }
  HttpFlood flood;
  // A call that has ended by the time its messages come.
  flood.begin = [](HttpConnection& connection, const std::string&) {
    return Frame(FrameType::kHeaders, kEndHeaders, connection.NextStream(),
                 CallHeaders(kSessionMethod, std::string(16, '\0')));
  };
  flood.next = [&](HttpConnection&, const std::string&) { return many; };
  Run(flood, attack);
  return absl::OkStatus();
}

}  // namespace gmb::attack
