// A session's stream without gRPC: what a call asks goes out on its own thread,
// and so does the answer come in.
#include "client/session/packet_stream.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "proto/error_status.h"

namespace gmb::internal {
namespace {

std::string OpeningFrame(const std::string& token) {
  v1::ClientFrame frame;
  frame.mutable_open_stream()->set_token(token);
  return frame.SerializeAsString();
}

absl::Status Broken(absl::string_view why) {
  return absl::UnavailableError(why);
}

// A broker from before there were such streams takes the first frame for a bad
// Hello; others refuse a connection as any, for a moment.
absl::Status WhyRefused(const v1::Error& refused) {
  const absl::Status why = proto::FromWireError(refused);
  return absl::IsInvalidArgument(why) ? absl::UnimplementedError(why.message())
                                      : Broken(why.message());
}

}  // namespace

PacketStream::PacketStream(ipc::SeqpacketSocket socket,
                           const std::string& token, StreamOwner* owner,
                           SessionWait* wait)
    : opening_(OpeningFrame(token)),
      owner_(*owner),
      wait_(*wait),
      socket_(std::move(socket)) {}

// Nothing is received before it: the end comes after the beginning.
void PacketStream::Start() {
  {
    base::MutexLock lock(&read_mu_);
    started_ = true;
    if (absl::Status opened = Open(); !opened.ok())
      return Finish(std::move(opened));
  }
  Poke();
}

// The broker's Challenge need not be awaited.
absl::Status PacketStream::Open() {
  base::MutexLock lock(&write_mu_);
  GMB_ASSIGN_OR_RETURN(
      const bool sent,
      socket_.TrySend(opening_, {}, /*with_credentials=*/true));
  if (!sent) return Broken("the stream's socket is full");
  GMB_RETURN_IF_ERROR(wait_.AddSocket(socket_.fd()));
  open_ = true;
  return absl::OkStatus();
}

void PacketStream::Poke() {
  base::MutexLock lock(&write_mu_);
  while (open_ && unsent_.empty()) {
    std::optional<v1::ClientMessage> next = owner_.NextToWrite();
    if (!next.has_value()) return;
    v1::ClientFrame frame;
    *frame.mutable_message() = *std::move(next);
    if (!Write(frame.SerializeAsString())) return;
  }
}

bool PacketStream::Write(const std::string& frame) {
  const absl::StatusOr<bool> sent = socket_.TrySend(frame, {});
  if (sent.ok() && *sent) return true;
  if (sent.ok()) {
    unsent_ = frame;
    wait_.ListenForRoom(socket_.fd(), true);
  } else {
    open_ = false;
    socket_.Shutdown();  // the next who receives sees it
  }
  return false;
}

void PacketStream::WriteRest() {
  {
    base::MutexLock lock(&write_mu_);
    if (!open_ || unsent_.empty()) return;
    const std::string frame = std::exchange(unsent_, {});
    if (!Write(frame)) return;
    wait_.ListenForRoom(socket_.fd(), false);
  }
  Poke();
}

void PacketStream::Cancel() {
  base::MutexLock lock(&write_mu_);
  cancelled_ = true;
  open_ = false;
  socket_.Shutdown();
}

bool PacketStream::IsCancelled() {
  base::MutexLock lock(&write_mu_);
  return cancelled_;
}

void PacketStream::Receive(uint64_t reader) {
  WriteRest();
  base::MutexLock lock(&read_mu_);
  if (!started_ || ended_) return;
  if (IsCancelled()) return Finish(absl::CancelledError("the session ends"));
  absl::StatusOr<std::optional<ipc::Packet>> packet = socket_.TryReceive();
  if (!packet.ok())
    return Finish(Broken("the broker closed the stream's connection"));
  if (!packet->has_value()) return;
  v1::BrokerFrame frame;
  if (!frame.ParseFromString((*packet)->bytes))
    return Finish(Broken("garbage on the stream"));
  OnFrame(std::move(frame), reader);
}

void PacketStream::OnFrame(v1::BrokerFrame frame, uint64_t reader) {
  switch (frame.kind_case()) {
    case v1::BrokerFrame::kMessage:
      return owner_.OnMessage(std::move(*frame.mutable_message()), reader);
    case v1::BrokerFrame::kStreamEnded:
      return Finish(proto::FromWireError(frame.stream_ended()));
    case v1::BrokerFrame::kRefused:
      return Finish(WhyRefused(frame.refused()));
    default:
      return;  // the Challenge; a newer broker may have more to say
  }
}

void PacketStream::Finish(absl::Status why) {
  ended_ = true;
  {
    base::MutexLock lock(&write_mu_);
    open_ = false;
  }
  wait_.RemoveSocket(socket_.fd());
  socket_.Shutdown();
  owner_.OnStreamEnded(std::move(why));
}

}  // namespace gmb::internal
