// The broker's answers as JSON, for programs.
#include "client/cli/text/json.h"

#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/cli/text/text.h"
#include "gmb/error.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace gmb::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string TimeToJson(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", ToTime(time),
                          absl::UTCTimeZone());
}

Json MessageToJson(const Message& message) {
  if (message.GetDescriptor() == google::protobuf::Timestamp::descriptor()) {
    return TimeToJson(static_cast<const google::protobuf::Timestamp&>(message));
  }
  if (message.GetDescriptor() == google::protobuf::Duration::descriptor()) {
    return absl::ToDoubleSeconds(
        ToDuration(static_cast<const google::protobuf::Duration&>(message)));
  }
  return ToJson(message);
}

std::string BytesToJson(const FieldDescriptor& field,
                        const std::string& bytes) {
  return field.type() == FieldDescriptor::TYPE_BYTES ? absl::Base64Escape(bytes)
                                                     : bytes;
}

// "GATE_" of Gate, "DEVICE_KIND_" of DeviceKind.
std::string PrefixOf(const std::string& type) {
  std::string prefix;
  for (const char c : type) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c)) && !prefix.empty())
      prefix.push_back('_');
    prefix.push_back(absl::ascii_toupper(static_cast<unsigned char>(c)));
  }
  return prefix + "_";
}

// A value's word, which some of them have their type's name before: "PARKED" of
// GATE_PARKED, as "MAPPED". One of a newer broker has no name here: its number.
Json EnumToJson(const FieldDescriptor& field, int number) {
  const auto* const value = field.enum_type()->FindValueByNumber(number);
  if (value == nullptr) return number;
  return std::string(
      absl::StripPrefix(value->name(), PrefixOf(field.enum_type()->name())));
}

Json SingleToJson(const Message& message, const FieldDescriptor* field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.GetFloat(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumToJson(*field, reflection.GetEnumValue(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return BytesToJson(*field, reflection.GetString(message, field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageToJson(reflection.GetMessage(message, field));
  }
  return nullptr;
}

Json ElementToJson(const Message& message, const FieldDescriptor* field,
                   int index) {
  const Reflection& reflection = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetRepeatedInt32(message, field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetRepeatedInt64(message, field, index);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetRepeatedUInt32(message, field, index);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetRepeatedUInt64(message, field, index);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetRepeatedDouble(message, field, index);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.GetRepeatedFloat(message, field, index);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetRepeatedBool(message, field, index);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumToJson(*field,
                        reflection.GetRepeatedEnumValue(message, field, index));
    case FieldDescriptor::CPPTYPE_STRING:
      return BytesToJson(*field,
                         reflection.GetRepeatedString(message, field, index));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageToJson(
          reflection.GetRepeatedMessage(message, field, index));
  }
  return nullptr;
}

Json FieldToJson(const Message& message, const FieldDescriptor* field) {
  const Reflection& reflection = *message.GetReflection();
  if (field->is_repeated()) {
    Json list = Json::array();
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      list.push_back(ElementToJson(message, field, i));
    }
    return list;
  }
  if (field->has_presence() && !reflection.HasField(message, field))
    return nullptr;
  return SingleToJson(message, field);
}

}  // namespace

Json ToJson(const Message& message) {
  Json json = Json::object();
  const auto* const type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* const field = type->field(i);
    // Of a oneof only the member that is set: {"bytes": 5}, not also
    // "fraction".
    if (field->real_containing_oneof() != nullptr &&
        !message.GetReflection()->HasField(message, field)) {
      continue;
    }
    json[field->name()] = FieldToJson(message, field);
  }
  return json;
}

Json ListToJson(const Message& all) {
  Json json = ToJson(all);
  json.erase("next_page_token");
  return json;
}

Json ErrorToJson(const absl::Status& status) {
  Json error;
  error["code"] = absl::StatusCodeToString(status.code());
  error["message"] = std::string(status.message());
  if (const std::optional<ErrorDetail> detail = GetErrorDetail(status)) {
    error["reason"] = ErrorReasonName(detail->reason);
    error["deficit_bytes"] = detail->deficit_bytes;
    error["retry_after"] = absl::ToDoubleSeconds(detail->retry_after);
    error["field"] = detail->field;
  }
  return {{"error", error}};
}

std::string PrettyJson(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string LineJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gmb::cli
