#ifndef GMB_CLIENT_CLI_VIEWS_POOL_BAR_H_
#define GMB_CLIENT_CLI_VIEWS_POOL_BAR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/cli/text/terminal.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// One part of the equation
//   capacity = granted + returned + ready + float + scrubbing + unreturned +
//   missing
struct PoolPart {
  absl::string_view name;
  uint64_t bytes = 0;
  absl::string_view meaning;
  Tone tone = Tone::kPlain;
  absl::string_view block;  // one character of the bar, UTF-8
  char ascii_block = ' ';
};

// All parts, in the order of the equation.
[[nodiscard]] std::vector<PoolPart> PartsOf(const v1::PoolStatus& pool);

// The parts drawn to scale in `columns` characters. A part that is not empty
// gets at least one of them.
[[nodiscard]] std::string PoolBar(const v1::PoolStatus& pool, int columns,
                                  const Terminal& terminal);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_POOL_BAR_H_
