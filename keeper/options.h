#ifndef GMB_KEEPER_OPTIONS_H_
#define GMB_KEEPER_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "keeper/life.h"

namespace gmb::keeper {

struct Options {
  enum class Do { kServe, kHelp, kVersion };

  Do what = Do::kServe;
  std::string socket;
  LifeOptions life;
  bool once = false;
  bool replace = false;
  bool background = false;
};

// The command line without the program's name. INVALID_ARGUMENT says what is
// wrong with it.
[[nodiscard]] absl::StatusOr<Options> ParseOptions(
    const std::vector<std::string>& arguments);

[[nodiscard]] std::string HelpText();

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_OPTIONS_H_
