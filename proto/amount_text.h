#ifndef GMB_PROTO_AMOUNT_TEXT_H_
#define GMB_PROTO_AMOUNT_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmb/v1/types.pb.h"

namespace gmb::proto {

// How people write quantities of memory, in files and on command lines.
//
//   bytes   "1073741824", "512MiB", "1.5GiB", "60Gi" (powers of 1024),
//           "2GB" (powers of 1000); upper and lower case alike
//   shares  "25%", "33.3%", 0 to 100 percent; "max" is 100%
//
// A bare number is bytes, never a share: "0.25" is refused. Parts of a byte
// are dropped. Every refusal is INVALID_ARGUMENT and names what is accepted.

// Bytes alone; 0 is allowed.
[[nodiscard]] absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);

// Bytes or a share.
[[nodiscard]] absl::StatusOr<v1::Amount> ParseAmount(absl::string_view text);

// "75% or 75GiB", for a number of bytes that was likely written without its unit.
[[nodiscard]] std::string LikelyMeant(uint64_t bytes);

// "60.0 GiB", "512.0 MiB", "17 B": for tables, rounded to one decimal.
[[nodiscard]] std::string FormatBytes(uint64_t bytes);

}  // namespace gmb::proto

#endif  // GMB_PROTO_AMOUNT_TEXT_H_
