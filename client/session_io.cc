// The session's two sockets: its thread, and what gRPC's threads call.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/no_throw.h"
#include "client/session.h"
#include "client/wire.h"
#include "gmb/error.h"
#include "proto/error_status.h"

namespace gmb::internal {
namespace {

constexpr absl::Duration kMostBackoff = absl::Seconds(1);
constexpr int64_t kMostPollMs = 60'000;

// Whether a new stream may do better than the one that ended so.
bool WorthAnotherStream(const absl::Status& status) {
  return !GetErrorDetail(status).has_value() || absl::IsUnavailable(status) ||
         absl::IsAborted(status) || absl::IsCancelled(status);
}

}  // namespace

void Session::Run() {
  for (;;) {
    {
      ipc::MutexLock lock(&mu_);
      if (closing_ || !over_.ok()) break;
    }
    const absl::Status status = NoThrow([this] {
      OpenStreamIfDue();
      WriteIfDue();
      AnswerTrims();
      WaitForEvent();
      return ReceiveFrames(nullptr);
    });
    if (!status.ok()) End(status);
  }
  HangUp();
}

void Session::HangUp() {
  shutdown(socket_.fd(), SHUT_RDWR);
  mover_.Clear();
  ipc::MutexLock lock(&receive_mu_);
  // Leases may keep the session for long; slabs in its socket would be held as
  // long.
  NoThrow([this] {
    absl::StatusOr<std::optional<ipc::Packet>> packet = socket_.TryReceive();
    while (packet.ok() ? packet->has_value()
                       : absl::IsInvalidArgument(packet.status())) {
      packet = socket_.TryReceive();
    }
    return packet.status();
  }).IgnoreError();
}

void Session::WaitForEvent() {
  std::array<pollfd, 2> fds = {
      {{socket_.fd(), POLLIN, 0}, {wakeup_.fd(), POLLIN, 0}}};
  int timeout_ms = -1;
  std::optional<Clock::time_point> next = trim_hook_->NextDue();
  {
    ipc::MutexLock lock(&mu_);
    if (write_at_.has_value())
      next = std::min(next.value_or(*write_at_), *write_at_);
    if (stream_ == nullptr || stream_ended_)
      next = std::min(next.value_or(reopen_at_), reopen_at_);
    if (next.has_value()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
      timeout_ms = static_cast<int>(std::max<int64_t>(left.count(), 0));
    }
  }
  if (poll(fds.data(), fds.size(), timeout_ms) > 0 && fds[1].revents != 0)
    wakeup_.Clear();
}

void Session::WaitAtSocket(Call& call) {
  std::array<pollfd, 2> fds = {
      {{socket_.fd(), POLLIN, 0}, {call.at_socket->fd(), POLLIN, 0}}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(call.deadline -
                                                                 Clock::now());
  const int timeout_ms =
      static_cast<int>(std::clamp<int64_t>(left.count(), 0, kMostPollMs));
  if (poll(fds.data(), fds.size(), timeout_ms) <= 0) return;
  if (fds[1].revents != 0) call.at_socket->Clear();
  if (fds[0].revents == 0) return;
  const absl::Status status = NoThrow([&] { return ReceiveFrames(&call); });
  if (!status.ok()) End(status);
}

absl::Status Session::ReceiveFrames(const Call* reader) {
  ipc::MutexLock lock(&receive_mu_);
  for (;;) {
    absl::StatusOr<std::optional<ipc::Packet>> packet = socket_.TryReceive();
    if (absl::IsInvalidArgument(packet.status())) {
      return ProtocolError(
          absl::StrCat(packet.status().message(),
                       " (if this process is short of file descriptors, raise "
                       "its limit: ulimit -n)"));
    }
    if (!packet.ok()) return packet.status();
    if (!packet->has_value()) return absl::OkStatus();
    if (absl::Status status = OnFrame(**std::move(packet), reader);
        !status.ok())
      return status;
  }
}

absl::Status Session::OnFrame(ipc::Packet packet, const Call* reader) {
  v1::BrokerFrame frame;
  if (!frame.ParseFromString(packet.bytes))
    return ProtocolError("garbage on the handle socket");
  if (frame.has_refused()) return proto::FromWireError(frame.refused());
  if (!frame.has_slabs())
    return ProtocolError("an unexpected frame on the handle socket");
  const v1::Slabs& slabs = frame.slabs();
  if (last_frame_id_ != 0 && slabs.frame_id() != last_frame_id_ + 1) {
    return ProtocolError(absl::StrCat("slabs frame ", slabs.frame_id(),
                                      " after ", last_frame_id_));
  }
  last_frame_id_ = slabs.frame_id();
  if (slabs.request_id() == 0) {
    if (absl::Status taken = mover_.OnSlabs(slabs, std::move(packet.fds));
        !taken.ok()) {
      return taken;
    }
  } else {
    ipc::MutexLock lock(&mu_);
    if (absl::Status taken = table_.OnSlabs(slabs, std::move(packet.fds));
        !taken.ok()) {
      return taken;
    }
    if (const auto call = calls_.find(slabs.request_id());
        call != calls_.end()) {
      call->second->arrivals.slabs = Clock::now();
      if (call->second != reader) call->second->Wake();
    }
  }
  PokeStream();  // what did not match its grant is released
  v1::ClientFrame ack;
  ack.mutable_slabs_ack()->set_frame_id(slabs.frame_id());
  const absl::StatusOr<bool> sent =
      socket_.TrySend(ack.SerializeAsString(), {});
  if (!sent.ok()) return sent.status();
  return *sent ? absl::OkStatus()
               : ProtocolError("the broker does not read the handle socket");
}

void Session::OpenStreamIfDue() {
  std::shared_ptr<Stream> ended;  // destroyed here, outside of the lock
  std::shared_ptr<Stream> stream;
  {
    ipc::MutexLock lock(&mu_);
    const bool open = stream_ != nullptr && !stream_ended_;
    if (open || closing_ || !over_.ok() || Clock::now() < reopen_at_) return;
    stream = Stream::Create(*stub_, welcome_.token(), this);
    ended = std::exchange(stream_, stream);
    stream_ended_ = false;
    table_.Rewind();
  }
  stream->Start();
}

void Session::WriteIfDue() {
  {
    ipc::MutexLock lock(&mu_);
    if (!write_at_.has_value() || Clock::now() < *write_at_) return;
    write_at_.reset();
  }
  PokeStream();
}

void Session::PokeStream() {
  std::shared_ptr<Stream> stream;
  {
    ipc::MutexLock lock(&mu_);
    stream = stream_;
  }
  if (stream != nullptr) stream->Poke();
}

void Session::CancelStream() {
  std::shared_ptr<Stream> stream;
  {
    ipc::MutexLock lock(&mu_);
    stream = stream_;
  }
  if (stream != nullptr) stream->Cancel();
}

std::optional<v1::ClientMessage> Session::NextToWrite() {
  ipc::MutexLock lock(&mu_);
  const v1::ClientMessage* const next = table_.NextToWrite();
  if (next == nullptr) return std::nullopt;
  return *next;
}

void Session::OnMessage(v1::BrokerMessage message) {
  const absl::Status status = NoThrow([&] {
    {
      ipc::MutexLock lock(&mu_);
      backoff_ = kFirstBackoff;
      stream_error_ = absl::OkStatus();
    }
    const uint64_t id = message.request_id();
    if (id == 0) return Notice(message);
    if (message.has_released())
      mover_.OnReleased(message.released().lease_id());
    {
      ipc::MutexLock lock(&mu_);
      if (absl::Status taken = table_.OnMessage(std::move(message));
          !taken.ok())
        return taken;
      if (const auto call = calls_.find(id); call != calls_.end()) {
        call->second->arrivals.grant = Clock::now();
        call->second->Wake();
      }
    }
    PokeStream();  // a grant that nobody waits for is released
    return absl::OkStatus();
  });
  if (!status.ok()) End(status);
}

absl::Status Session::Notice(const v1::BrokerMessage& message) {
  switch (message.kind_case()) {
    case v1::BrokerMessage::kBudgetChanged:
      notifier_->BudgetChanged(QuotaFromWire(message.budget_changed().quota()));
      break;
    case v1::BrokerMessage::kDraining:
      notifier_->Draining(DurationFromWire(message.draining().remaining()));
      break;
    case v1::BrokerMessage::kEvict:
      return mover_.OnEvict(message.evict());
    case v1::BrokerMessage::kMap:
      return mover_.OnMap(message.map());
    case v1::BrokerMessage::kPausing:
      gate_->PauseNoticed();
      break;
    case v1::BrokerMessage::kTrim:
      trim_hook_->OnTrim(message.trim(), Clock::now());
      break;
    default:
      break;  // a newer broker may have more to say
  }
  return absl::OkStatus();
}

void Session::OnStreamEnded(const grpc::Status& status) {
  absl::Status why = NoThrow([&] { return proto::FromGrpcStatus(status); });
  if (!why.ok() && !WorthAnotherStream(why)) End(why);
  ipc::MutexLock lock(&mu_);
  stream_error_ = why.ok()
                      ? StatusWithoutThrowing(absl::StatusCode::kUnavailable,
                                              "the broker closed the stream")
                      : std::move(why);
  stream_ended_ = true;
  reopen_at_ = Clock::now() + ToNanoseconds(backoff_);
  backoff_ = std::min(2 * backoff_, kMostBackoff);
  wakeup_.Notify();
  stream_changed_.NotifyAll();
}

}  // namespace gmb::internal
