#ifndef GMB_CLIENT_CLI_TEXT_JSON_H_
#define GMB_CLIENT_CLI_TEXT_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace gmb::cli {

// JSON for scripts: the wire's messages with the wire's field names, in the
// order of the .proto. Unlike protobuf's own JSON, 64-bit integers are numbers,
// every field is present, and durations are seconds: so that jq can compute.
//
//   enum                     its word, "PARKED", without its type's name
//   Timestamp                "2026-05-04T15:03:21.042Z", null when not set
//   Duration                 seconds, 1.5
//   Amount                   {"bytes": n} or {"fraction": x}
//   message that is not set  null
using Json = nlohmann::ordered_json;

[[nodiscard]] Json ToJson(const google::protobuf::Message& message);

// Of all pages of a list, put together: nothing is said of pages.
[[nodiscard]] Json ListToJson(const google::protobuf::Message& all);

// {"error": {"code", "message", "reason", "deficit_bytes", "retry_after",
// "field"}}
[[nodiscard]] Json ErrorToJson(const absl::Status& status);

// Text of any bytes: what is not UTF-8 is replaced. Indented, or on one line.
[[nodiscard]] std::string PrettyJson(const Json& json);
[[nodiscard]] std::string LineJson(const Json& json);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_TEXT_JSON_H_
