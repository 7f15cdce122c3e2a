// Grant and restore: slabs' handles go out on the session's handle socket.
#include "broker/server/socket_sender.h"

#include <utility>

#include "absl/status/status.h"

namespace gmb::broker {

void SenderNews::Push(std::vector<uint64_t> Batch::*list, uint64_t connection) {
  {
    base::MutexLock lock(&mu_);
    (batch_.*list).push_back(connection);
  }
  wakeup_.Notify();
}

void SenderNews::Full(uint64_t connection) { Push(&Batch::full, connection); }
void SenderNews::Crowded(uint64_t connection) {
  Push(&Batch::crowded, connection);
}

void SenderNews::FrameSent() {
  {
    base::MutexLock lock(&mu_);
    if (batch_.frame_sent) return;
    batch_.frame_sent = true;
  }
  wakeup_.Notify();
}

SenderNews::Batch SenderNews::Take() {
  wakeup_.Clear();
  base::MutexLock lock(&mu_);
  Batch taken = std::exchange(batch_, {});
  batch_.frame_sent = taken.frame_sent;
  return taken;
}

void SenderNews::ForgetFrameSent() {
  base::MutexLock lock(&mu_);
  batch_.frame_sent = false;
}

SocketSender::SocketSender(uint64_t connection,
                           std::shared_ptr<ipc::SeqpacketSocket> socket,
                           std::shared_ptr<UnreadFds> unread,
                           std::shared_ptr<SenderNews> news)
    : connection_(connection),
      socket_(std::move(socket)),
      unread_(std::move(unread)),
      news_(std::move(news)) {}

SocketSender::~SocketSender() { socket_->Shutdown(); }

void SocketSender::Hangup() { socket_->Shutdown(); }

absl::StatusOr<bool> SocketSender::TrySend(const std::string& frame,
                                           absl::Span<const int> fds) {
  if (!fds.empty() && !unread_->Take(fds.size())) {
    news_->Crowded(connection_);
    news_->FrameSent();
    return false;
  }
  const absl::StatusOr<bool> sent = socket_->TrySend(frame, fds);
  if (sent.ok() && *sent) {
    unread_->Sent();
  } else {
    unread_->NotSent();
  }
  if (sent.ok()) {
    if (!*sent) news_->Full(connection_);
  } else if (absl::IsResourceExhausted(sent.status())) {
    // The fds in flight of all sessions count together: no fault of this peer.
    news_->Crowded(connection_);
  } else {
    return sent;
  }
  news_->FrameSent();
  return sent.ok() && *sent;
}

}  // namespace gmb::broker
