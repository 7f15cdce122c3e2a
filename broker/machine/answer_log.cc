// A session's last answers, in little room.
#include "broker/machine/answer_log.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace gmb::broker {
namespace {

// A broker has few devices, and their names are short.
constexpr size_t kMostDevices = 16;
constexpr size_t kMostNameBytes = 64;
constexpr size_t kMostBufferBytes =
    AnswerLog::kMostBytes - sizeof(AnswerLog) -
    kMostDevices * (sizeof(std::string) + kMostNameBytes + 1);
// The buffer grows by such steps, while a session has few answers.
constexpr size_t kStep = size_t{2} << 10;

void Shorten(std::string* message) {
  if (message->size() <= AnswerLog::kMostMessageBytes) return;
  message->resize(
      base::Utf8Front(*message, AnswerLog::kMostMessageBytes).size());
  absl::StrAppend(message, "...");
}

}  // namespace

void AnswerLog::Add(const v1::BrokerMessage& answer) {
  if (answer.has_quota_report()) return;
  Header header{.request_id = answer.request_id()};
  greatest_ = std::max(greatest_, header.request_id);
  v1::BrokerMessage small = answer;
  small.clear_request_id();
  if (small.has_grant()) {
    header.device = PlaceOf(small.grant().device());
    if (header.device != 0) small.mutable_grant()->clear_device();
  }
  if (small.has_error()) Shorten(small.mutable_error()->mutable_message());
  const std::string text = small.SerializeAsString();
  header.bytes = static_cast<uint32_t>(text.size());
  if (sizeof(header) + text.size() > kMostBufferBytes / 2) {
    forgotten_ = std::max(forgotten_, header.request_id);
    return;
  }
  MakeRoom(sizeof(header) + text.size());
  const char* const begin = reinterpret_cast<const char*>(&header);
  buffer_.insert(buffer_.end(), begin, begin + sizeof(header));
  buffer_.insert(buffer_.end(), text.begin(), text.end());
  ++answers_;
}

std::optional<v1::BrokerMessage> AnswerLog::Find(uint64_t request_id) const {
  if (request_id > greatest_) return std::nullopt;
  for (size_t at = first_; at < buffer_.size();) {
    const Header header = HeaderAt(at);
    at += sizeof(header);
    if (header.request_id == request_id) {
      v1::BrokerMessage answer;
      if (!answer.ParseFromArray(buffer_.data() + at,
                                 static_cast<int>(header.bytes))) {
        return std::nullopt;
      }
      answer.set_request_id(request_id);
      if (header.device != 0)
        answer.mutable_grant()->set_device(devices_[header.device - 1]);
      return answer;
    }
    at += header.bytes;
  }
  return std::nullopt;
}

size_t AnswerLog::bytes() const {
  size_t bytes = sizeof(*this) + buffer_.capacity() +
                 devices_.capacity() * sizeof(std::string);
  for (const std::string& device : devices_) bytes += device.capacity() + 1;
  return bytes;
}

AnswerLog::Header AnswerLog::HeaderAt(size_t at) const {
  Header header;
  std::memcpy(&header, buffer_.data() + at, sizeof(header));
  return header;
}

uint32_t AnswerLog::PlaceOf(const std::string& device) {
  const auto known = std::find(devices_.begin(), devices_.end(), device);
  if (known != devices_.end())
    return static_cast<uint32_t>(known - devices_.begin()) + 1;
  if (devices_.size() == kMostDevices || device.size() > kMostNameBytes)
    return 0;
  if (devices_.empty()) devices_.reserve(1);
  if (devices_.size() == 1) devices_.reserve(kMostDevices);
  devices_.push_back(device);
  return static_cast<uint32_t>(devices_.size());
}

void AnswerLog::ForgetFirst() {
  const Header header = HeaderAt(first_);
  forgotten_ = std::max(forgotten_, header.request_id);
  first_ += sizeof(header) + header.bytes;
  --answers_;
}

// For one more answer: the oldest ones go when there is none, and what they
// leave is used again once it is a quarter of all.
void AnswerLog::MakeRoom(size_t bytes) {
  if (answers_ == kMostAnswers) ForgetFirst();
  while (buffer_.size() - first_ + bytes > kMostBufferBytes) ForgetFirst();
  const bool full = buffer_.size() + bytes > kMostBufferBytes;
  if (full || first_ >= kMostBufferBytes / 4) {
    buffer_.erase(buffer_.begin(),
                  buffer_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
  const size_t wanted = buffer_.size() + bytes;
  if (wanted <= buffer_.capacity()) return;
  buffer_.reserve(
      std::min(kMostBufferBytes, (wanted + kStep - 1) / kStep * kStep));
}

}  // namespace gmb::broker
