#ifndef GMB_CLIENT_CLI_DEMO_CHECK_LIST_H_
#define GMB_CLIENT_CLI_DEMO_CHECK_LIST_H_

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/text/json.h"
#include "client/cli/text/terminal.h"

namespace gmb::cli {

// The demo's claims and its measurements.
class CheckList {
 public:
  void Record(bool passed, std::string claim, std::string measured) {
    checks_.push_back({passed, std::move(claim), std::move(measured)});
  }

  // There are checks and all of them passed.
  [[nodiscard]] bool passed() const;
  [[nodiscard]] size_t size() const { return checks_.size(); }

  void Print(std::ostream& out, const Terminal& terminal) const;
  // [{"passed", "claim", "measured"}]
  [[nodiscard]] Json AsJson() const;

 private:
  struct Check {
    bool passed;
    std::string claim;
    std::string measured;
  };
  std::vector<Check> checks_;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_CHECK_LIST_H_
