#ifndef GMB_TESTS_CLI_SHELL_H_
#define GMB_TESTS_CLI_SHELL_H_

#include <string>

namespace gmb::cli {

// Whether the shell is installed here.
bool HaveShell(const std::string& shell);
// Runs a script in a fresh bash, zsh or fish, without anybody's start-up files;
// what it printed, errors included.
std::string RunInShell(const std::string& shell, const std::string& script);

}  // namespace gmb::cli

#endif  // GMB_TESTS_CLI_SHELL_H_
