#ifndef GMB_CLIENT_CLI_VIEWS_EVENT_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_EVENT_VIEW_H_

#include <ostream>

#include "client/cli/text/terminal.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// One line: time, kind, and the tenant, session, lease or device of the event.
void PrintEvent(const v1::Event& event, const Terminal& terminal,
                std::ostream& out);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_EVENT_VIEW_H_
