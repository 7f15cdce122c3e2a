// Where the slabs of a lease come in: as file descriptors, on a socket of
// their own beside the stream that brings the grant.
#include "client/session/handle_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/no_throw.h"
#include "client/wire.h"
#include "proto/error_status.h"

namespace gmb::internal {
namespace {

constexpr int kSeats = 4;
constexpr int64_t kMostPollMs = 60'000;

int PollTimeoutMs(std::optional<HandleChannel::TimePoint> until) {
  if (!until.has_value()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      *until - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, kMostPollMs));
}

}  // namespace

HandleChannel::Seat::Seat(HandleChannel* channel) : channel_(*channel) {
  base::MutexLock lock(&channel_.seats_mu_);
  if (channel_.seats_taken_ == kSeats) return;
  if (!channel_.spare_.empty()) {
    wakeup_ = std::move(channel_.spare_.back());
    channel_.spare_.pop_back();
  } else if (absl::StatusOr<ipc::Wakeup> own = ipc::Wakeup::Create();
             own.ok()) {
    wakeup_ = *std::move(own);
  } else {
    return;
  }
  if (channel_.seats_taken_++ == 0)
    channel_.wait_.ListenAtSocket(channel_.socket_.fd(), false);
}

// A word that came too late is one for the next who sits here: it looks once
// more than it needs to.
HandleChannel::Seat::~Seat() {
  if (!wakeup_.has_value()) return;
  base::MutexLock lock(&channel_.seats_mu_);
  if (--channel_.seats_taken_ == 0)
    channel_.wait_.ListenAtSocket(channel_.socket_.fd(), true);
  channel_.spare_.push_back(*std::move(wakeup_));
}

HandleChannel::HandleChannel(ipc::SeqpacketSocket socket, SlabSink* sink,
                             SessionWait* wait)
    : sink_(*sink), socket_(std::move(socket)), wait_(*wait) {
  base::MutexLock lock(&seats_mu_);
  spare_.reserve(kSeats);
  // One is there from the start: nearly always it is the only one.
  if (absl::StatusOr<ipc::Wakeup> first = ipc::Wakeup::Create(); first.ok())
    spare_.push_back(*std::move(first));
}

bool HandleChannel::Wait(ipc::Wakeup* wakeup,
                         std::optional<TimePoint> until) const {
  std::array<pollfd, 2> fds = {
      {{socket_.fd(), POLLIN, 0}, {wakeup->fd(), POLLIN, 0}}};
  if (poll(fds.data(), fds.size(), PollTimeoutMs(until)) <= 0) return false;
  if (fds[1].revents != 0) wakeup->Clear();
  return fds[0].revents != 0;
}

absl::Status HandleChannel::Receive(uint64_t reader) {
  base::MutexLock lock(&mu_);
  absl::StatusOr<std::optional<ipc::Packet>> packet = socket_.TryReceive();
  if (absl::IsInvalidArgument(packet.status())) {
    return ProtocolError(
        absl::StrCat(packet.status().message(),
                     " (if this process is short of file descriptors, raise "
                     "its limit: ulimit -n)"));
  }
  if (!packet.ok()) return packet.status();
  if (!packet->has_value()) return absl::OkStatus();
  return OnFrame(**std::move(packet), reader);
}

absl::Status HandleChannel::OnFrame(ipc::Packet packet, uint64_t reader) {
  v1::BrokerFrame frame;
  if (!frame.ParseFromString(packet.bytes))
    return ProtocolError("garbage on the handle socket");
  if (frame.has_refused()) return proto::FromWireError(frame.refused());
  if (!frame.has_slabs())
    return ProtocolError("an unexpected frame on the handle socket");
  const v1::Slabs& slabs = frame.slabs();
  // They rise, and jump where another broker has taken the session over.
  if (slabs.frame_id() <= last_frame_id_) {
    return ProtocolError(absl::StrCat("slabs frame ", slabs.frame_id(),
                                      " after ", last_frame_id_));
  }
  last_frame_id_ = slabs.frame_id();
  GMB_RETURN_IF_ERROR(sink_.OnSlabs(slabs, std::move(packet.fds), reader));
  v1::ClientFrame ack;
  ack.mutable_slabs_ack()->set_frame_id(slabs.frame_id());
  GMB_ASSIGN_OR_RETURN(const bool sent,
                       socket_.TrySend(ack.SerializeAsString(), {}));
  return sent ? absl::OkStatus()
              : ProtocolError("the broker does not read the handle socket");
}

void HandleChannel::HangUp() const { shutdown(socket_.fd(), SHUT_RDWR); }

void HandleChannel::Drain() {
  base::MutexLock lock(&mu_);
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

}  // namespace gmb::internal
