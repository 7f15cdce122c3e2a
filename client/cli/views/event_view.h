#ifndef GMB_CLIENT_CLI_VIEWS_EVENT_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_EVENT_VIEW_H_

#include <ostream>

#include "absl/strings/string_view.h"
#include "client/cli/text/terminal.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// One line: time, kind, and the tenant, session, lease or device of the event.
void PrintEvent(const v1::Event& event, const Terminal& terminal,
                std::ostream& out);

// Whether the kind of event tells of something bad, of waiting, or of a success.
[[nodiscard]] Tone ToneOfEvent(absl::string_view kind);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_EVENT_VIEW_H_
