#ifndef GMB_CLIENT_CLI_DEMO_FRAME_H_
#define GMB_CLIENT_CLI_DEMO_FRAME_H_

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/demo/monitor.h"
#include "client/cli/text/terminal.h"

namespace gmb::cli {

// Everything that the live screen shows.
struct Picture {
  bool has_snapshot = false;
  Snapshot snapshot;
  std::string act;
  std::deque<std::pair<Tone, std::string>> lines;  // the latest last
  std::map<std::string, std::string> notes;  // a word behind a tenant's bar
  absl::Duration elapsed;
};

// The picture as lines for `terminal`, none wider than it, all together at most
// its height: the pool, a bar a tenant, the act, and as many lines as fit.
//
// A tenant's bar is the pool to scale: bytes within its guarantee, bytes
// borrowed, bytes off the device, and marks where its guarantee and its limit
// are.
[[nodiscard]] std::vector<std::string> DrawFrame(const Picture& picture,
                                                 const Terminal& terminal);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_FRAME_H_
