#ifndef GMB_CLIENT_CLI_COMMANDS_PRELOADABLE_H_
#define GMB_CLIENT_CLI_COMMANDS_PRELOADABLE_H_

#include <string>

namespace gmb::cli {

// The fate of a library of LD_PRELOAD in a program. The program is found as
// execvpe finds it, and a script's interpreter is looked at in its place.
struct Preloadable {
  enum class Kind {
    kYes,      // as far as can be seen
    kBreaks,   // it does not start with the library
    kPassesBy  // it starts, and the library is not in it
  };
  Kind kind = Kind::kYes;
  std::string why;  // a sentence, unless kYes
};
[[nodiscard]] Preloadable LookAt(const std::string& program);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_COMMANDS_PRELOADABLE_H_
