#ifndef GMB_CLIENT_CLI_VERSION_TEXT_H_
#define GMB_CLIENT_CLI_VERSION_TEXT_H_

#include <string>

namespace gmb::cli {

// "0.1.0 (1a2b3c4d5e6f)": with the commit, where the build knew it.
[[nodiscard]] std::string VersionText();

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VERSION_TEXT_H_
