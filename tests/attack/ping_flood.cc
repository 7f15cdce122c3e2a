// Pings whose answers nobody reads.
#include "tests/attack/attack.h"
#include "tests/attack/http_flood.h"
#include "tests/attack/http_frames.h"

namespace gmb::attack {

absl::Status PingFlood(Attack& attack) {
  std::string many;
  for (int i = 0; i < 256; ++i)
    many += Frame(FrameType::kPing, 0, 0, "12345678");
  HttpFlood flood;
  flood.next = [&](HttpConnection&, const std::string&) { return many; };
  Run(flood, attack);
  return absl::OkStatus();
}

}  // namespace gmb::attack
