// Questions before what cannot be taken back.
#include "client/cli/confirm.h"

#include <unistd.h>

#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace gmb::cli {

absl::Status Confirm(const Context& context, const std::string& what) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, ": nothing was changed: say --yes if that is meant"));
  }
  context.err << what << ".\nGo on? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  answer = absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer));
  if (answer == "y" || answer == "yes") return absl::OkStatus();
  return absl::FailedPreconditionError("nothing was changed");
}

}  // namespace gmb::cli
