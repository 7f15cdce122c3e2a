#ifndef GMB_CLIENT_CLI_COMMANDS_DID_YOU_MEAN_H_
#define GMB_CLIENT_CLI_COMMANDS_DID_YOU_MEAN_H_

#include <string>
#include <vector>

namespace gmb::cli {

// The one of `known` that a slip of the hand turns into `word`: letters left
// out, added, changed, or two that changed places, at most one in three. Empty
// when there is none, or several are as near.
[[nodiscard]] std::string DidYouMean(const std::string& word,
                                     const std::vector<std::string>& known);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_DID_YOU_MEAN_H_
