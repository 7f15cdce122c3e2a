#ifndef GMB_CLIENT_CLI_TOP_FRAME_H_
#define GMB_CLIENT_CLI_TOP_FRAME_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/text/terminal.h"
#include "client/cli/top/look.h"
#include "client/cli/top/rows.h"

namespace gmb::cli::top {

enum class Panel { kTenants, kSessions };

// The things to be drawn beside what was seen.
struct Scene {
  Choice choice;
  Panel panel = Panel::kTenants;  // the keys of movement scroll this one
  size_t first_tenant = 0;        // row at the top of its panel
  size_t first_session = 0;
  bool help = false;
  std::string prompt;  // in the place of the line of keys; empty: none
  absl::Duration delay;
  std::string socket_dir;
  absl::Time now;
};

// How much of the panels was drawn.
struct Extent {
  size_t tenant_rows = 0;  // lines that its panel had
  size_t session_rows = 0;
  size_t tenants = 0;  // rows that there are
  size_t sessions = 0;
};

// One screen: no line wider than the terminal, all together as high as it.
[[nodiscard]] std::vector<std::string> DrawScreen(const Sight& sight,
                                                  const Scene& scene,
                                                  const Terminal& terminal,
                                                  Extent* extent);

// The same as text for a file or a pipe: all rows, no keys, no moves.
[[nodiscard]] std::vector<std::string> DrawOnce(const Sight& sight,
                                                const Scene& scene,
                                                const Terminal& terminal);

}  // namespace gmb::cli::top

#endif  // GMB_CLIENT_CLI_TOP_FRAME_H_
