// Sessions of one process that ask without end.
#include "tests/attack/asking.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/attack/http_connection.h"
#include "tests/attack/http_frames.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr int kAskingWaitMs = 20;
constexpr int64_t kFirstWindow = 65'535;  // HTTP/2's own
constexpr uint64_t kMostWindow = (uint64_t{1} << 31) - 1;
constexpr uint64_t kInitialWindowSize = 4;  // a parameter of SETTINGS
constexpr size_t kParameterBytes = 6;
// Fewer than a frame may have, so that little of a window stays unused.
constexpr size_t kQuestionBytes = 8'192;

class Asker {
 public:
  Asker(const Asking& asking, Attack* attack)
      : asking_(asking), attack_(attack) {
    FillFrame();
  }

  // False: it has no connection now.
  bool Turn() {
    if (!connection_.is_open() && !(Greeted() && Open())) return false;
    connection_.Read(&unparsed_);
    TakeFrames();
    if (connection_.is_open()) Ask();
    if (connection_.is_open()) attack_->Count("bytes", connection_.Write());
    if (!connection_.is_open()) attack_->Count("closed");
    return connection_.is_open();
  }
  [[nodiscard]] pollfd Wait() const {
    return {.fd = connection_.fd(),
            .events = static_cast<short>(
                connection_.unwritten() > 0 ? POLLIN | POLLOUT : POLLIN),
            .revents = 0};
  }

 private:
  void FillFrame() {
    questions_.clear();
    questions_a_frame_ = 0;
    while (true) {
      for (v1::ClientMessage question : asking_.questions) {
        if (asking_.anew) question.set_request_id(++last_id_);
        const std::string bytes = MessageBytes(question.SerializeAsString());
        if (questions_.size() + bytes.size() > kQuestionBytes) return;
        questions_ += bytes;
        ++questions_a_frame_;
      }
    }
  }

  bool Greeted() {
    if (session_.has_value() && session_->Lives()) return true;
    if (session_.has_value()) attack_->Count("sessions_lost");
    session_.reset();
    auto greeted = OwnSession::Greet(attack_->options().socket_dir);
    attack_->Count(greeted.ok() ? "sessions" : "refused");
    if (greeted.ok()) session_.emplace(*std::move(greeted));
    return session_.has_value();
  }

  bool Open() {
    if (!connection_.Connect(attack_->options().socket_dir + "/gmb.sock"))
      return false;
    attack_->Count("connections");
    unparsed_.clear();
    answers_.clear();
    asked_ = 0;
    initial_window_ = stream_window_ = connection_window_ = kFirstWindow;
    stream_ = connection_.NextStream();
    connection_.Append(Opening());
    connection_.Append(
        Frame(FrameType::kSettings, 0, 0,
              absl::StrCat(BigEndian(kInitialWindowSize, 2),
                           BigEndian(asking_.answers_window, 4))));
    connection_.Append(Frame(FrameType::kWindowUpdate, 0, 0,
                             BigEndian(kMostWindow - kFirstWindow, 4)));
    connection_.Append(
        Frame(FrameType::kHeaders, kEndHeaders, stream_,
              CallHeaders(kSessionMethod, session_->welcome().token())));
    return true;
  }

  void TakeFrames() {
    absl::string_view bytes = unparsed_;
    while (const std::optional<ReceivedFrame> frame = TakeFrame(&bytes))
      Take(*frame);
    unparsed_.erase(0, unparsed_.size() - bytes.size());
  }

  void Take(const ReceivedFrame& frame) {
    if (frame.type == FrameType::kData && frame.stream == stream_)
      TakeAnswers(frame.payload);
    if (frame.type == FrameType::kWindowUpdate && frame.payload.size() == 4) {
      const auto more = static_cast<int64_t>(ReadBigEndian(frame.payload));
      (frame.stream == 0 ? connection_window_ : stream_window_) += more;
    } else if (frame.type == FrameType::kSettings &&
               (frame.flags & kAck) == 0) {
      TakeSettings(frame.payload);
    } else if (frame.stream == stream_ &&
               (frame.type == FrameType::kRstStream ||
                (frame.flags & kEndStream) != 0)) {
      connection_.Close();  // the call is over
    }
  }

  void TakeAnswers(absl::string_view payload) {
    absl::StrAppend(&answers_, payload);
    absl::string_view bytes = answers_;
    while (TakeMessage(&bytes).has_value()) attack_->Count("answered");
    answers_.erase(0, answers_.size() - bytes.size());
  }

  void TakeSettings(absl::string_view parameters) {
    for (; parameters.size() >= kParameterBytes;
         parameters.remove_prefix(kParameterBytes)) {
      if (ReadBigEndian(parameters.substr(0, 2)) != kInitialWindowSize)
        continue;
      const auto size =
          static_cast<int64_t>(ReadBigEndian(parameters.substr(2, 4)));
      stream_window_ += size - std::exchange(initial_window_, size);
    }
    connection_.Append(Frame(FrameType::kSettings, kAck, 0));
  }

  void Ask() {
    while (asked_ + questions_a_frame_ <= asking_.most &&
           connection_.unwritten() < kQuestionBytes) {
      const auto bytes = static_cast<int64_t>(questions_.size());
      if (std::min(stream_window_, connection_window_) < bytes) return;
      connection_.Append(Frame(FrameType::kData, 0, stream_, questions_));
      stream_window_ -= bytes;
      connection_window_ -= bytes;
      asked_ += questions_a_frame_;
      attack_->Count("asked", questions_a_frame_);
      if (asking_.anew) FillFrame();
    }
  }

  const Asking& asking_;
  Attack* const attack_;
  std::string questions_;  // of a frame
  uint64_t questions_a_frame_ = 0;
  uint64_t last_id_ = 0;

  std::optional<OwnSession> session_;
  HttpConnection connection_;
  std::string unparsed_;
  std::string answers_;  // what DATA frames held, not parsed yet
  uint32_t stream_ = 0;
  uint64_t asked_ = 0;
  // Bytes that the broker still takes: of a stream at first, of ours, of all.
  int64_t initial_window_ = 0;
  int64_t stream_window_ = 0;
  int64_t connection_window_ = 0;
};

}  // namespace

void KeepAsking(const Asking& asking, Attack& attack) {
  std::vector<Asker> askers;
  for (int i = 0; i < attack.options().connections; ++i)
    askers.emplace_back(asking, &attack);
  while (attack.GoesOn()) {
    std::vector<pollfd> waits;
    bool refused = false;  // so soon no other one fares better
    for (Asker& asker : askers) {
      if (refused && asker.Wait().fd < 0) continue;
      if (asker.Turn()) {
        waits.push_back(asker.Wait());
      } else {
        refused = true;
      }
    }
    if (::poll(waits.data(), waits.size(), kAskingWaitMs) < 0) continue;
  }
}

}  // namespace gmb::attack
