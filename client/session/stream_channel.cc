// The session's stream: opened, opened again when it broke, and told when there
// is something to write.
#include "client/session/stream_channel.h"

#include <algorithm>
#include <utility>

#include "client/no_throw.h"
#include "client/session/channel.h"
#include "client/session/stream.h"
#include "gmb/error.h"
#include "gmb/v1/session.grpc.pb.h"
#include "grpcpp/channel.h"
#include "proto/error_status.h"

namespace gmb::internal {
namespace {

using Clock = std::chrono::steady_clock;

constexpr absl::Duration kMostBackoff = absl::Seconds(1);
// While a broker may be on its way back, which takes it some 100 ms.
constexpr absl::Duration kMostAwayBackoff = absl::Milliseconds(100);
constexpr std::chrono::seconds kAwayTime{10};
// And a call waits: before the many who have nothing to say, which keep that
// broker busy when they are back.
constexpr absl::Duration kMostAwaitedBackoff = absl::Milliseconds(20);
constexpr std::chrono::seconds kAwaitedTime{2};
// A message that nobody waits for goes with the next one, or after this time.
constexpr std::chrono::milliseconds kWriteDelay{5};

// Whether a new stream may do better than the one that ended so.
bool WorthAnotherStream(const absl::Status& status) {
  return !GetErrorDetail(status).has_value() || absl::IsUnavailable(status) ||
         absl::IsAborted(status) || absl::IsCancelled(status);
}

// Of the sessions, from 0 to a half. The token is random.
double SpreadOf(const std::string& token) {
  return token.empty() ? 0 : static_cast<unsigned char>(token.back()) / 512.0;
}

// Not the broker has ended the stream, but its connection.
bool IsOfTransport(const absl::Status& status) {
  return absl::IsUnavailable(status) && !GetErrorDetail(status).has_value();
}

}  // namespace

struct StreamChannel::Service {
  explicit Service(std::shared_ptr<grpc::Channel> its_channel)
      : channel(std::move(its_channel)),
        stub(v1::SessionService::NewStub(channel)) {}

  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<v1::SessionService::Stub> stub;
};

StreamChannel::StreamChannel(SocketDir dir, std::string token,
                             MessageSource* source, MessageSink* sink,
                             SessionWait* wait)
    : dir_(std::move(dir)),
      token_(std::move(token)),
      source_(*source),
      sink_(*sink),
      wait_(*wait),
      spread_(SpreadOf(token_)),
      reopen_at_(Clock::now()),
      opened_at_(reopen_at_),
      broken_at_(reopen_at_) {}

StreamChannel::~StreamChannel() = default;

void StreamChannel::DropBroken() {
  std::shared_ptr<Stream> ended;  // keeps its channel
  {
    base::MutexLock lock(&mu_);
    if (IsOpen() || !std::exchange(reconnect_, false)) return;
    ended = std::exchange(stream_, nullptr);
  }
  service_ = nullptr;
}

bool StreamChannel::Connect() {
  if (service_ != nullptr) return true;
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = ConnectChannel(dir_);
  if (channel.ok()) {
    service_ = std::make_unique<const Service>(*std::move(channel));
    return true;
  }
  const bool awaited = source_.IsAwaited();
  base::MutexLock lock(&mu_);
  opened_at_ = Clock::now();
  OnBreak(channel.status(), awaited);
  return false;
}

void StreamChannel::OpenIfDue() {
  DropBroken();
  {
    base::MutexLock lock(&mu_);
    if (closed_ || IsOpen() || Clock::now() < reopen_at_) return;
  }
  if (!Connect()) return;
  // While no stream is open nobody asks the source for messages, and nobody
  // else opens one.
  source_.Rewind();
  std::shared_ptr<Stream> ended;  // destroyed here, outside of the lock
  std::shared_ptr<Stream> stream;
  {
    base::MutexLock lock(&mu_);
    if (closed_) return;
    stream = Stream::Create(*service_->stub, token_, this);
    ended = std::exchange(stream_, stream);
    stream_ended_ = false;
    opened_at_ = Clock::now();
  }
  stream->Start();
}

void StreamChannel::WriteIfDue() {
  {
    base::MutexLock lock(&mu_);
    if (!write_at_.has_value()) return;
    if (Clock::now() < *write_at_) {
      // The alarm may have rung a moment early.
      wait_.SetAlarm(*write_at_);
      return;
    }
    write_at_.reset();
  }
  Poke();
}

std::optional<StreamChannel::TimePoint> StreamChannel::NextDue() const {
  base::MutexLock lock(&mu_);
  return IsOpen() ? std::nullopt : std::optional(reopen_at_);
}

void StreamChannel::Poke() {
  std::shared_ptr<Stream> stream;
  {
    base::MutexLock lock(&mu_);
    stream = stream_;
    // What was left for later goes now, too.
    if (std::exchange(write_at_, std::nullopt).has_value()) wait_.CancelAlarm();
    if (!IsOpen()) Hasten();
  }
  if (stream != nullptr) stream->Poke();
}

void StreamChannel::PokeSoon() {
  base::MutexLock lock(&mu_);
  if (write_at_.has_value()) return;
  write_at_ = Clock::now() + kWriteDelay;
  wait_.SetAlarm(*write_at_);
}

void StreamChannel::Close() {
  std::shared_ptr<Stream> stream;
  {
    base::MutexLock lock(&mu_);
    closed_ = true;
    stream = stream_;
  }
  if (stream != nullptr) stream->Cancel();
  wait_.Notify();
}

void StreamChannel::CloseAndWait() {
  Close();
  base::MutexLock lock(&mu_);
  while (IsOpen()) stream_changed_.Wait(&mu_);
}

absl::Status StreamChannel::error() const {
  base::MutexLock lock(&mu_);
  return error_;
}

std::optional<v1::ClientMessage> StreamChannel::NextToWrite() {
  return source_.NextToWrite();
}

void StreamChannel::OnMessage(v1::BrokerMessage message) {
  {
    base::MutexLock lock(&mu_);
    backoff_ = kFirstBackoff;
    error_ = absl::OkStatus();
  }
  sink_.OnMessage(std::move(message));
}

void StreamChannel::OnStreamEnded(const grpc::Status& status) {
  absl::Status why = NoThrow([&] { return proto::FromGrpcStatus(status); });
  if (!why.ok() && !WorthAnotherStream(why)) sink_.OnStreamRefused(why);
  const bool awaited = source_.IsAwaited();
  base::MutexLock lock(&mu_);
  stream_ended_ = true;
  OnBreak(std::move(why), awaited);
  wait_.Notify();
  stream_changed_.NotifyAll();
}

void StreamChannel::Hasten() {
  const TimePoint now = Clock::now();
  const TimePoint soon = now + absl::ToChronoNanoseconds(kMostAwaitedBackoff);
  if (!broke_in_transport_ || now - broken_at_ > kAwaitedTime ||
      reopen_at_ <= soon) {
    return;
  }
  reopen_at_ = soon;
  wait_.Notify();
}

void StreamChannel::OnBreak(absl::Status why, bool awaited) {
  const TimePoint now = Clock::now();
  reconnect_ = broke_in_transport_ = IsOfTransport(why);
  // One that was open for long has held, though the broker had nothing to say.
  if (now - opened_at_ > absl::ToChronoNanoseconds(kMostBackoff))
    backoff_ = kFirstBackoff;
  if (backoff_ == kFirstBackoff) broken_at_ = now;
  const bool may_be_back = reconnect_ && now - broken_at_ < kAwayTime;
  const bool hurries = reconnect_ && awaited && now - broken_at_ < kAwaitedTime;
  const absl::Duration pause =
      hurries ? std::min(backoff_, kMostAwaitedBackoff) : backoff_;
  error_ = why.ok() ? StatusWithoutThrowing(absl::StatusCode::kUnavailable,
                                            "the broker closed the stream")
                    : std::move(why);
  // All sessions of a broker that dies lose their streams at once.
  reopen_at_ = now + absl::ToChronoNanoseconds(pause * (1 + spread_));
  backoff_ =
      std::min(2 * backoff_, may_be_back ? kMostAwayBackoff : kMostBackoff);
}

}  // namespace gmb::internal
