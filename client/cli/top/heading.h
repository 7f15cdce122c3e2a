#ifndef GMB_CLIENT_CLI_TOP_HEADING_H_
#define GMB_CLIENT_CLI_TOP_HEADING_H_

#include <string>
#include <vector>

#include "client/cli/text/terminal.h"
#include "client/cli/top/frame.h"
#include "client/cli/top/look.h"
#include "client/cli/top/rows.h"

namespace gmb::cli::top {

// The lines above the panels: the broker, what its processes do or why it does
// not answer, its pools.
[[nodiscard]] std::vector<std::string> DrawHeading(const Sight& sight,
                                                   const Scene& scene,
                                                   const Rows& rows,
                                                   const Terminal& terminal);

}  // namespace gmb::cli::top

#endif  // GMB_CLIENT_CLI_TOP_HEADING_H_
