// The session's stream: opened, opened again when it broke, and told when there
// is something to write.
#include "client/session/stream_channel.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "client/no_throw.h"
#include "client/session/channel.h"
#include "client/session/grpc_stream.h"
#include "client/session/packet_stream.h"
#include "gmb/error.h"
#include "gmb/v1/session.grpc.pb.h"
#include "grpcpp/channel.h"
#include "ipc/seqpacket.h"

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
                             bool takes_packets, MessageSource* source,
                             MessageSink* sink, SessionWait* wait)
    : dir_(std::move(dir)),
      token_(std::move(token)),
      source_(*source),
      sink_(*sink),
      wait_(*wait),
      takes_packets_(takes_packets),
      spread_(SpreadOf(token_)),
      by_packets_(takes_packets),
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

std::shared_ptr<Stream> StreamChannel::Connect() {
  bool by_packets = false;
  {
    base::MutexLock lock(&mu_);
    by_packets = by_packets_;
  }
  absl::StatusOr<std::shared_ptr<Stream>> stream =
      by_packets ? ConnectByPackets() : ConnectByGrpc();
  if (stream.ok()) return *std::move(stream);
  const bool awaited = source_.IsAwaited();
  base::MutexLock lock(&mu_);
  opened_at_ = Clock::now();
  by_packets_ = takes_packets_;  // another broker may be on its way
  OnBreak(stream.status(), awaited);
  return nullptr;
}

absl::StatusOr<std::shared_ptr<Stream>> StreamChannel::ConnectByGrpc() {
  if (service_ == nullptr) {
    GMB_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel,
                         ConnectChannel(dir_));
    service_ = std::make_unique<const Service>(std::move(channel));
  }
  return GrpcStream::Create(*service_->stub, token_, this);
}

// A backlog without room is no reason to wait here.
absl::StatusOr<std::shared_ptr<Stream>> StreamChannel::ConnectByPackets() {
  absl::StatusOr<ipc::SeqpacketSocket> socket =
      ipc::SeqpacketSocket::Connect(dir_.handle_path(), absl::ZeroDuration());
  if (!socket.ok()) return absl::UnavailableError(socket.status().message());
  StreamOwner* const owner = this;
  return std::make_shared<PacketStream>(*std::move(socket), token_, owner,
                                        &wait_);
}

void StreamChannel::OpenIfDue() {
  DropBroken();
  {
    base::MutexLock lock(&mu_);
    if (closed_ || IsOpen() || Clock::now() < reopen_at_) return;
  }
  const std::shared_ptr<Stream> stream = Connect();
  if (stream == nullptr) return;
  // While no stream is open nobody asks the source for messages, and nobody
  // else opens one.
  source_.Rewind();
  std::shared_ptr<Stream> ended;  // destroyed here, outside of the lock
  bool closed = false;
  {
    base::MutexLock lock(&mu_);
    closed = closed_;
    ended = std::exchange(stream_, stream);
    stream_ended_ = false;
    opened_at_ = Clock::now();
  }
  stream->Start();
  if (closed) stream->Cancel();
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

std::shared_ptr<Stream> StreamChannel::stream() const {
  base::MutexLock lock(&mu_);
  return stream_;
}

void StreamChannel::Receive(uint64_t reader) {
  if (const std::shared_ptr<Stream> open = stream(); open != nullptr)
    open->Receive(reader);
}

void StreamChannel::Poke() {
  std::shared_ptr<Stream> stream;
  {
    base::MutexLock lock(&mu_);
    stream = stream_;
    // Messages that were left for later go now, too.
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
  Receive(0);  // the end, where nobody else receives any more
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

void StreamChannel::OnMessage(v1::BrokerMessage message, uint64_t reader) {
  {
    base::MutexLock lock(&mu_);
    backoff_ = kFirstBackoff;
    error_ = absl::OkStatus();
  }
  sink_.OnMessage(std::move(message), reader);
}

void StreamChannel::OnStreamEnded(absl::Status why) {
  if (!why.ok() && !WorthAnotherStream(why)) sink_.OnStreamRefused(why);
  const bool awaited = source_.IsAwaited();
  base::MutexLock lock(&mu_);
  stream_ended_ = true;
  // Another broker may know more than the last one, or less.
  by_packets_ = takes_packets_ && !absl::IsUnimplemented(why) &&
                (by_packets_ || IsOfTransport(why));
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
