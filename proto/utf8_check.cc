// Before a message is sent: whether its text is text.
#include "proto/utf8_check.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"

namespace gmb::proto {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;

// Where the first byte is that begins no character.
std::optional<size_t> FirstBad(absl::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = base::Utf8Length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

absl::Status CheckText(const FieldDescriptor& field, const std::string& text) {
  const std::optional<size_t> bad = FirstBad(text);
  if (!bad.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field.name(), " is not UTF-8: its byte ", *bad + 1,
                   " begins no character; write it as UTF-8"));
}

absl::Status CheckField(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& values = *message.GetReflection();
  const bool repeated = field.is_repeated();
  const int count = repeated ? values.FieldSize(message, &field) : 1;
  for (int i = 0; i < count; ++i) {
    absl::Status status;
    if (field.type() == FieldDescriptor::TYPE_STRING) {
      std::string kept;
      status = CheckText(
          field, repeated ? values.GetRepeatedStringReference(message, &field,
                                                              i, &kept)
                          : values.GetStringReference(message, &field, &kept));
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      status =
          CheckUtf8(repeated ? values.GetRepeatedMessage(message, &field, i)
                             : values.GetMessage(message, &field));
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUtf8(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (absl::Status status = CheckField(message, *field); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

}  // namespace gmb::proto
