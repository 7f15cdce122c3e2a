// Every request of a session whose client speaks packets: from its socket to
// the core, and back.
#include "broker/server/packet_stream.h"

#include <utility>

#include "absl/status/statusor.h"
#include "broker/server/answer_cost.h"
#include "broker/server/handle_frames.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

// So many messages it costs to begin one, on which all that is unanswered may be
// said anew.
constexpr int kBegun = 16;

PacketStream::Time Now() { return std::chrono::steady_clock::now(); }

}  // namespace

PacketStream::PacketStream(const Deps& deps, uint64_t id,
                           StreamConnection connection, const Caller& caller)
    : deps_(deps),
      id_(id),
      connection_(std::move(connection)),
      caller_(caller) {}

absl::Status PacketStream::Begin() {
  deps_.pace->Count(caller_.tenant, kBegun, Now());
  const absl::StatusOr<std::shared_ptr<Outbox>> outbox =
      deps_.core->AttachStream(caller_.session, shared_from_this());
  if (!outbox.ok()) return outbox.status();
  bool written_early = false;
  absl::Status watched;
  {
    base::MutexLock lock(&mu_);
    outbox_ = *outbox;
    written_early = std::exchange(written_early_, false);
    // Also one that is over by now: its hang-up has it let go.
    watched = deps_.epoll->Add(connection_.socket->fd(),
                               {ipc::EpollTag::kSocket, id_}, EPOLLIN);
    if (watched.ok() && !unsent_.empty()) (void)Watch();
  }
  if (!watched.ok()) {
    (void)(*outbox)->DetachStream(this);
    return watched;
  }
  if (written_early) OnWritten(*outbox);
  return absl::OkStatus();
}

absl::Status PacketStream::Watch() const {
  return deps_.epoll->Change(
      connection_.socket->fd(), {ipc::EpollTag::kSocket, id_},
      (reading_.on() ? static_cast<uint32_t>(EPOLLIN) : 0U) |
          (unsent_.empty() ? 0U : static_cast<uint32_t>(EPOLLOUT)));
}

// Messages in the socket of a client that has gone are carried out all the
// same, as its slabs' acknowledgements are.
bool PacketStream::OnEvents(uint32_t events) {
  if ((events & EPOLLOUT) != 0) OnRoom();
  if ((events & EPOLLIN) != 0) return Read();
  return (events & (EPOLLHUP | EPOLLERR)) == 0;
}

bool PacketStream::OnRested() {
  base::MutexLock lock(&mu_);
  reading_.resting = false;
  return !over_ && Watch().ok();
}

std::optional<PacketStream::Time> PacketStream::TakeRest() {
  return std::exchange(rest_, std::nullopt);
}

bool PacketStream::Read() {
  for (uint32_t read = 0; read < RequestPace::kTurn; ++read) {
    {
      base::MutexLock lock(&mu_);
      if (over_) return false;
    }
    if (!MayRead()) return true;
    ipc::SeqpacketSocket& socket = *connection_.socket;
    const absl::StatusOr<std::optional<ipc::Packet>> packet =
        connection_.sends_no_fds ? socket.TryReceive()
                                 : socket.TryReceiveWithoutFds();
    if (absl::IsUnavailable(packet.status())) {
      std::shared_ptr<Outbox> outbox;
      {
        base::MutexLock lock(&mu_);
        reading_.asked_all = true;
        outbox = outbox_;
        if (!Watch().ok()) return false;
      }
      // It waits for its answers, or is gone, which the set tells next.
      outbox->CloseOnceWritten(this);
      return true;
    }
    if (packet.ok() && !packet->has_value()) return true;
    const absl::StatusOr<v1::ClientMessage> message =
        packet.ok()
            ? ParseMessage(**packet)
            : proto::MakeError(v1::BAD_REQUEST, packet.status().message());
    if (!message.ok()) {
      Close(message.status());
      return false;
    }
    --let_in_;
    read += deps_.pace->CountBytes(caller_.tenant, (*packet)->bytes.size(),
                                   &let_in_, Now());
    if (!Handle(*message)) return true;
  }
  return true;
}

// False: it took long, and others come first.
bool PacketStream::Handle(const v1::ClientMessage& message) {
  const int cost =
      CostOfLooks(deps_.core->HandleMessage(caller_.session, message));
  if (cost == 0) return true;
  deps_.pace->GiveBack(caller_.tenant, std::exchange(let_in_, 0), Now());
  deps_.pace->Count(caller_.tenant, cost, Now());
  return false;
}

// A client that does not read its answers is not read either.
bool PacketStream::MayRead() {
  if (let_in_ == 0 && !TakeTurn()) return false;
  base::MutexLock lock(&mu_);
  reading_.crowded = outbox_->crowded();
  if (reading_.crowded) (void)Watch();
  return !reading_.crowded;
}

// A turn is waited for once; then all of it may be read.
bool PacketStream::TakeTurn() {
  let_in_ = RequestPace::kTurn;
  const Time now = Now();
  const Time turn = deps_.pace->NextTurn(caller_.tenant, now);
  if (turn <= now) return true;
  rest_ = turn;
  base::MutexLock lock(&mu_);
  reading_.resting = true;
  (void)Watch();
  return false;
}

bool PacketStream::Write(v1::BrokerMessage message) {
  const int cost = CostOf(message);
  std::string frame = MessageFrame(std::move(message));
  std::shared_ptr<Outbox> outbox;
  {
    base::MutexLock lock(&mu_);
    if (over_) return false;
    if (cost > 0) deps_.pace->Count(caller_.tenant, cost, Now());
    const absl::StatusOr<bool> sent = connection_.socket->TrySend(frame, {});
    if (!sent.ok()) {
      over_ = true;
      connection_.socket->Shutdown();  // the server's thread sees it
      return false;
    }
    if (!*sent) {
      unsent_ = std::move(frame);
      if (outbox_ != nullptr) (void)Watch();
      return true;
    }
    outbox = outbox_;
    if (outbox == nullptr) written_early_ = true;
  }
  if (outbox != nullptr) OnWritten(outbox);
  return true;
}

void PacketStream::OnRoom() {
  std::shared_ptr<Outbox> outbox;
  {
    base::MutexLock lock(&mu_);
    if (over_ || unsent_.empty()) return;
    const absl::StatusOr<bool> sent = connection_.socket->TrySend(unsent_, {});
    if (sent.ok() && !*sent) return;
    unsent_.clear();
    if (!sent.ok() || !Watch().ok()) {
      over_ = true;
      connection_.socket->Shutdown();
      return;
    }
    outbox = outbox_;
  }
  OnWritten(outbox);
}

void PacketStream::OnWritten(const std::shared_ptr<Outbox>& outbox) {
  outbox->OnWriteDone(this);
  base::MutexLock lock(&mu_);
  if (!reading_.crowded || outbox->crowded()) return;
  reading_.crowded = false;
  if (!over_) (void)Watch();
}

void PacketStream::Close(const absl::Status& status) {
  base::MutexLock lock(&mu_);
  if (std::exchange(over_, true)) return;
  // Best effort: a peer that does not read learns nothing.
  if (!status.ok() && unsent_.empty())
    (void)connection_.socket->TrySend(StreamEndedFrame(status), {}).ok();
  connection_.socket->Shutdown();
}

void PacketStream::End() {
  std::shared_ptr<Outbox> outbox;
  {
    base::MutexLock lock(&mu_);
    over_ = true;
    outbox = std::move(outbox_);
  }
  deps_.epoll->Remove(connection_.socket->fd());
  connection_.socket->Shutdown();
  deps_.pace->GiveBack(caller_.tenant, std::exchange(let_in_, 0), Now());
  if (outbox != nullptr) (void)outbox->DetachStream(this);
}

}  // namespace gmb::broker
