#ifndef GMB_PROTO_UTF8_CHECK_H_
#define GMB_PROTO_UTF8_CHECK_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace gmb::proto {

// INVALID_ARGUMENT, with the field and the place, for a message that has text
// which is not UTF-8. Protobuf sends such a message all the same, complains on
// standard error, and its receiver takes it for garbage.
[[nodiscard]] absl::Status CheckUtf8(const google::protobuf::Message& message);

}  // namespace gmb::proto

#endif  // GMB_PROTO_UTF8_CHECK_H_
