// One gRPC stream of a session.
#include "client/session/stream.h"

#include <utility>

namespace gmb::internal {

std::shared_ptr<Stream> Stream::Create(v1::SessionService::Stub& stub,
                                       const std::string& token,
                                       StreamOwner* owner) {
  std::shared_ptr<Stream> stream(new Stream(owner));
  stream->context_.AddMetadata("gmb-session-bin", token);
  stub.async()->Session(&stream->context_, stream.get());
  stream->AddHold();
  stream->StartRead(&stream->incoming_);
  return stream;
}

void Stream::Start() {
  StartCall();
  Poke();
}

void Stream::Poke() {
  std::shared_ptr<const v1::ClientMessage> message;
  {
    base::MutexLock lock(&mu_);
    if (writing_ || write_failed_ || reads_over_) return;
    std::optional<v1::ClientMessage> next = owner_->NextToWrite();
    if (!next.has_value()) return;
    message = std::make_shared<const v1::ClientMessage>(*std::move(next));
    outgoing_ = message;
    writing_ = true;
  }
  StartWrite(message.get());
}

void Stream::OnWriteDone(bool ok) {
  bool over = false;
  {
    base::MutexLock lock(&mu_);
    writing_ = false;
    write_failed_ = !ok;
    over = reads_over_;
  }
  if (over) {
    RemoveHold();
  } else if (ok) {
    Poke();
  } else {
    Cancel();  // so that the read ends too
  }
}

void Stream::OnReadDone(bool ok) {
  if (ok) {
    v1::BrokerMessage message;
    {
      // Reads follow each other, on different threads; this shows it to
      // ThreadSanitizer, which does not see inside gRPC.
      base::MutexLock lock(&mu_);
      message.Swap(&incoming_);
    }
    owner_->OnMessage(std::move(message));
    StartRead(&incoming_);
    return;
  }
  bool last = false;
  {
    base::MutexLock lock(&mu_);
    reads_over_ = true;
    last = !writing_;
  }
  if (last) RemoveHold();
}

void Stream::OnDone(const grpc::Status& status) {
  {
    // After all that other threads did with this stream; see OnReadDone.
    base::MutexLock lock(&mu_);
  }
  owner_->OnStreamEnded(status);
}

}  // namespace gmb::internal
