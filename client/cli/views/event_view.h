#ifndef GMB_CLIENT_CLI_VIEWS_EVENT_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_EVENT_VIEW_H_

#include <ostream>

#include "client/cli/text/terminal.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// One line: time, kind, whom and what it is about.
void PrintEvent(const v1::Event& event, const Terminal& terminal,
                std::ostream& out);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_EVENT_VIEW_H_
