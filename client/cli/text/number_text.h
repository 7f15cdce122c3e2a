#ifndef GMB_CLIENT_CLI_TEXT_NUMBER_TEXT_H_
#define GMB_CLIENT_CLI_TEXT_NUMBER_TEXT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gmb::cli {

// Numbers as people write them in options: decimal digits and nothing else. An
// empty word, a sign, a space, an exponent and a leading zero, which elsewhere
// means octal, are refused: a script's unset variable must not become a 0.
// Every refusal is INVALID_ARGUMENT and says what to write.

// "42", from `least` to `most`.
[[nodiscard]] absl::StatusOr<uint64_t> ParseWhole(absl::string_view text,
                                                  uint64_t least,
                                                  uint64_t most);
// "2", "0.5": above 0.
[[nodiscard]] absl::StatusOr<double> ParseWeight(absl::string_view text);
// "0xA5", "165": a byte.
[[nodiscard]] absl::StatusOr<uint8_t> ParseByte(absl::string_view text);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_TEXT_NUMBER_TEXT_H_
