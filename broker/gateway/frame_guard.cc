// Judges a client's HTTP/2 frames by their headers, before gRPC meets them.
#include "broker/gateway/frame_guard.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gmb::broker {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// How often each message to a client lets it ping, enlarge a window, or cut a
// message, more than time does. Messages that it sends itself earn it nothing.
constexpr double kPingsAMessage = 1;
constexpr double kShortDataAMessage = 1;
constexpr double kWindowUpdatesAMessage = 2;

// gRPC keeps some 40 bytes for each piece of a message that is not complete: a
// frame, or what came at once of one. No honest frame of DATA is shorter than
// the first, and none comes in many pieces that are shorter than the second.
constexpr uint32_t kShortestData = 4;
constexpr size_t kScrapBytes = 64;

absl::Status TooOften(absl::string_view frames) {
  return absl::ResourceExhaustedError(
      absl::StrCat("it sent ", frames, " frames too fast"));
}

}  // namespace

absl::Status FrameGuard::OnClientBytes(absl::string_view bytes, Time now) {
  if (absl::Status taken = TakePreface(&bytes); !taken.ok()) return taken;
  const bool scrap = bytes.size() < kScrapBytes;
  absl::Status judged = from_client_.Scan(bytes, [&](const FrameHeader& frame) {
    return OnClientFrame(frame, now);
  });
  if (!judged.ok() || !scrap || !from_client_.within_frame()) return judged;
  return scraps_.Take(now) ? absl::OkStatus() : TooOften("pieces of");
}

absl::Status FrameGuard::TakePreface(absl::string_view* bytes) {
  const size_t taken = std::min(kPreface.size() - preface_, bytes->size());
  if (bytes->substr(0, taken) != kPreface.substr(preface_, taken))
    return absl::InvalidArgumentError("it does not speak HTTP/2");
  preface_ += taken;
  bytes->remove_prefix(taken);
  return absl::OkStatus();
}

size_t FrameGuard::BytesBeforeCall(absl::string_view bytes) const {
  const size_t preface = std::min(kPreface.size() - preface_, bytes.size());
  return preface +
         from_client_.BytesBefore(FrameHeader::kHeaders, bytes.substr(preface));
}

absl::Status FrameGuard::OnClientFrame(const FrameHeader& frame, Time now) {
  if (frame.length > kMaxFrameBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("it sent a frame of ", frame.length,
                     " bytes; the most is ", kMaxFrameBytes));
  }
  if (block_stream_ != 0) {
    if (frame.type == FrameHeader::kContinuation) return OnBlock(frame);
    return absl::InvalidArgumentError("it broke off a header block");
  }
  switch (frame.type) {
    case FrameHeader::kData:
      return OnData(frame, now);
    case FrameHeader::kHeaders:
      return OnHeaders(frame, now);
    case FrameHeader::kContinuation:
      return absl::InvalidArgumentError("it continued no header block");
    case FrameHeader::kRstStream:
      streams_.erase(frame.stream);
      return resets_.Take(now) ? absl::OkStatus() : TooOften("RST_STREAM");
    case FrameHeader::kSettings:
      return settings_.Take(now) ? absl::OkStatus() : TooOften("SETTINGS");
    case FrameHeader::kPing:
      return pings_.Take(now) ? absl::OkStatus() : TooOften("PING");
    case FrameHeader::kWindowUpdate:
      return window_updates_.Take(now) ? absl::OkStatus()
                                       : TooOften("WINDOW_UPDATE");
    default:
      return others_.Take(now) ? absl::OkStatus() : TooOften("unusual");
  }
}

absl::Status FrameGuard::OnData(const FrameHeader& frame, Time now) {
  if (frame.length >= kShortestData) return absl::OkStatus();
  TokenBucket& bucket = frame.length == 0 ? others_ : short_data_;
  return bucket.Take(now) ? absl::OkStatus() : TooOften("short DATA");
}

absl::Status FrameGuard::OnHeaders(const FrameHeader& frame, Time now) {
  if (frame.stream == 0)
    return absl::InvalidArgumentError("it sent headers of no stream");
  ++calls_;
  if (!headers_.Take(now)) return TooOften("HEADERS");
  streams_.insert(frame.stream);
  if (streams_.size() > kMaxStreams) {
    return absl::ResourceExhaustedError(
        absl::StrCat("it opened more than ", kMaxStreams, " streams at once"));
  }
  block_stream_ = frame.stream;
  block_bytes_ = 0;
  continuations_ = 0;
  return OnBlock(frame);
}

absl::Status FrameGuard::OnBlock(const FrameHeader& frame) {
  block_bytes_ += frame.length;
  if (frame.type == FrameHeader::kContinuation) ++continuations_;
  if (frame.stream != block_stream_)
    return absl::InvalidArgumentError("it continued another stream's headers");
  if (block_bytes_ > kMaxHeaderBlockBytes ||
      continuations_ > kMaxContinuations) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "it sent a header block of more than ", kMaxHeaderBlockBytes,
        " bytes, or of more than ", kMaxContinuations, " continuations"));
  }
  if ((frame.flags & FrameHeader::kEndHeaders) != 0) block_stream_ = 0;
  return absl::OkStatus();
}

void FrameGuard::OnServerBytes(absl::string_view bytes) {
  from_server_
      .Scan(bytes,
            [this](const FrameHeader& frame) {
              const bool carries_end = frame.type == FrameHeader::kData ||
                                       frame.type == FrameHeader::kHeaders;
              const bool ends =
                  frame.type == FrameHeader::kRstStream ||
                  (carries_end && (frame.flags & FrameHeader::kEndStream) != 0);
              if (ends) streams_.erase(frame.stream);
              if (frame.type == FrameHeader::kData && frame.length > 0) {
                pings_.Earn(kPingsAMessage);
                short_data_.Earn(kShortDataAMessage);
                window_updates_.Earn(kWindowUpdatesAMessage);
              }
              return absl::OkStatus();
            })
      .IgnoreError();  // it judges nothing
}

}  // namespace gmb::broker
