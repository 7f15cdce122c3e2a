#ifndef GMB_BROKER_CONFIG_VALUES_H_
#define GMB_BROKER_CONFIG_VALUES_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "quota/amount.h"

namespace gmb::broker {

// Single values as they are written in the file and in flags. Every refusal is
// INVALID_ARGUMENT, says what is accepted, and shows the text escaped and cut.

[[nodiscard]] absl::StatusOr<quota::Amount> ParseQuotaAmount(
    absl::string_view text);
[[nodiscard]] absl::StatusOr<uint64_t> ParseSize(
    absl::string_view text);  // at most 64 TiB
[[nodiscard]] absl::StatusOr<uint32_t> ParseNumber(absl::string_view text,
                                                   uint32_t least,
                                                   uint32_t most);
[[nodiscard]] absl::StatusOr<double> ParseWeight(
    absl::string_view text);  // finite, above 0
[[nodiscard]] absl::StatusOr<absl::Duration> ParseTime(absl::string_view text,
                                                       absl::Duration most);
[[nodiscard]] absl::StatusOr<bool> ParseTruth(
    absl::string_view text);  // true or false
[[nodiscard]] absl::StatusOr<mode_t> ParseMode(
    absl::string_view text);  // octal, at most 0777
// A number, or a name that the system knows.
[[nodiscard]] absl::StatusOr<uid_t> ParseUser(absl::string_view text);
[[nodiscard]] absl::StatusOr<gid_t> ParseGroup(absl::string_view text);

// For messages: escaped, at most 40 bytes of it, in quotes.
[[nodiscard]] std::string Shown(absl::string_view text);

}  // namespace gmb::broker

#endif  // GMB_BROKER_CONFIG_VALUES_H_
