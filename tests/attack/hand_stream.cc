// Enough of gRPC to hold a lease, without gRPC.
#include "tests/attack/hand_stream.h"

#include <poll.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/attack/http_frames.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kWrite = absl::Seconds(5);

bool Await(int fd, short events, absl::Time deadline) {
  const absl::Duration rest = deadline - absl::Now();
  if (rest <= absl::ZeroDuration()) return false;
  pollfd wait{.fd = fd, .events = events, .revents = 0};
  return ::poll(&wait, 1,
                static_cast<int>(absl::ToInt64Milliseconds(rest)) + 1) > 0;
}

}  // namespace

bool HandStream::Open(const std::string& socket_dir, const std::string& token) {
  frames_.clear();
  if (!connection_.Connect(socket_dir + "/gmb.sock")) return false;
  connection_.Append(Opening());
  OpenCall(token);
  return is_open();
}

void HandStream::OpenOn(base::UniqueFd connection, uint32_t next_stream,
                        const std::string& token) {
  frames_.clear();
  connection_.Adopt(std::move(connection), next_stream);
  OpenCall(token);
}

void HandStream::OpenCall(const std::string& token) {
  messages_.clear();
  received_.clear();
  stream_ = connection_.NextStream();
  connection_.Append(Frame(FrameType::kHeaders, kEndHeaders, stream_,
                           CallHeaders(kSessionMethod, token)));
  (void)Flush(kWrite);
}

uint64_t HandStream::Send(v1::ClientMessage message) {
  message.set_request_id(++last_id_);
  connection_.Append(Message(stream_, message.SerializeAsString()));
  return Flush(kWrite) ? last_id_ : 0;
}

bool HandStream::Flush(absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  while (is_open() && connection_.unwritten() > 0) {
    connection_.Write();
    if (is_open() && connection_.unwritten() > 0 &&
        !Await(fd(), POLLOUT, deadline)) {
      return false;
    }
  }
  return is_open();
}

std::optional<v1::BrokerMessage> HandStream::Receive(absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  while (received_.empty()) {
    if (!ReadMore(deadline)) return std::nullopt;
  }
  v1::BrokerMessage message = std::move(received_.front());
  received_.pop_front();
  return message;
}

std::optional<v1::BrokerMessage> HandStream::Answer(uint64_t id,
                                                    absl::Duration patience) {
  if (id == 0) return std::nullopt;
  const absl::Time deadline = absl::Now() + patience;
  for (size_t at = 0;; ++at) {
    while (at == received_.size()) {
      if (!ReadMore(deadline)) return std::nullopt;
    }
    if (received_[at].request_id() != id || received_[at].has_waiting())
      continue;
    v1::BrokerMessage message = std::move(received_[at]);
    received_.erase(received_.begin() + static_cast<ptrdiff_t>(at));
    return message;
  }
}

bool HandStream::ReadMore(absl::Time deadline) {
  if (!is_open() || !Await(fd(), POLLIN, deadline)) return false;
  connection_.Read(&frames_);
  TakeFrames();
  TakeMessages();
  return is_open() || !received_.empty();
}

void HandStream::TakeFrames() {
  absl::string_view bytes = frames_;
  while (const std::optional<ReceivedFrame> frame = TakeFrame(&bytes))
    Take(*frame);
  frames_.erase(0, frames_.size() - bytes.size());
  if (is_open()) connection_.Write();
}

void HandStream::Take(const ReceivedFrame& frame) {
  if (frame.type == FrameType::kData && frame.stream == stream_)
    absl::StrAppend(&messages_, frame.payload);
  const bool asks_for_ack = (frame.flags & kAck) == 0;
  if (frame.type == FrameType::kSettings && asks_for_ack)
    connection_.Append(Frame(FrameType::kSettings, kAck, 0));
  if (frame.type == FrameType::kPing && asks_for_ack)
    connection_.Append(Frame(FrameType::kPing, kAck, 0, frame.payload));
  // The trailers of the call, or its end before it began.
  const bool over =
      (frame.type == FrameType::kHeaders && (frame.flags & kEndStream) != 0) ||
      frame.type == FrameType::kRstStream;
  if (over && frame.stream == stream_) connection_.Close();
}

void HandStream::TakeMessages() {
  absl::string_view bytes = messages_;
  while (const std::optional<absl::string_view> one = TakeMessage(&bytes)) {
    v1::BrokerMessage message;
    if (message.ParseFromArray(one->data(), static_cast<int>(one->size())))
      received_.push_back(std::move(message));
  }
  messages_.erase(0, messages_.size() - bytes.size());
}

}  // namespace gmb::attack
