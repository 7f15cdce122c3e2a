#ifndef GMB_CLIENT_CLI_VIEWS_EVENT_KINDS_H_
#define GMB_CLIENT_CLI_VIEWS_EVENT_KINDS_H_

#include <string>
#include <vector>

namespace gmb::cli {

// The kinds of events that a broker of this version has (docs/operations.md),
// in the order of the alphabet.
[[nodiscard]] std::vector<std::string> EventKinds();

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_EVENT_KINDS_H_
