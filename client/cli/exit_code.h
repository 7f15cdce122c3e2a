#ifndef GMB_CLIENT_CLI_EXIT_CODE_H_
#define GMB_CLIENT_CLI_EXIT_CODE_H_

namespace gmb::cli {

// The command's exit codes, for scripts. docs/cli.md explains them.
enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,         // the broker refused, or something was found wrong
  kUsage = 2,          // the command line is wrong; nothing was done
  kNotReachable = 3,   // no broker answers, or it went away
  kWrongContents = 4,  // leased memory did not hold what was written to it
  kCannotStart = 126,  // `gmb run`: the program is there but cannot be started
  kNoProgram = 127,    // `gmb run`: no such program; as shells say it
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_EXIT_CODE_H_
