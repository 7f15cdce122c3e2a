#ifndef GMB_CLIENT_CLI_TOP_SHORT_TEXT_H_
#define GMB_CLIENT_CLI_TOP_SHORT_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client/cli/top/rows.h"

namespace gmb::cli::top {

// Quantities in a column of 5 characters, with powers of 1024: "12.3G",
// "1023M", "0".
[[nodiscard]] std::string ShortSize(uint64_t bytes);
// "-" for 0.
[[nodiscard]] std::string ShortSizeOrDash(uint64_t bytes);
// "+1.20G", "-512M"; "-" for none, "0" for no change. At most 6 characters.
[[nodiscard]] std::string ShortRate(const Rate& rate);
// "5s", "12m", "3h", "4d".
[[nodiscard]] std::string ShortTime(absl::Duration time);

}  // namespace gmb::cli::top

#endif  // GMB_CLIENT_CLI_TOP_SHORT_TEXT_H_
