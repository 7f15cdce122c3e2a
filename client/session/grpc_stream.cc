// A session's stream by gRPC: for brokers that know no other.
#include "client/session/grpc_stream.h"

#include <utility>

#include "client/no_throw.h"
#include "proto/error_status.h"

namespace gmb::internal {

std::shared_ptr<GrpcStream> GrpcStream::Create(v1::SessionService::Stub& stub,
                                               const std::string& token,
                                               StreamOwner* owner) {
  std::shared_ptr<GrpcStream> stream(new GrpcStream(owner));
  stream->context_.AddMetadata("gmb-session-bin", token);
  stub.async()->Session(&stream->context_, stream.get());
  stream->AddHold();
  stream->StartRead(&stream->incoming_);
  return stream;
}

void GrpcStream::Start() {
  StartCall();
  Poke();
}

void GrpcStream::Poke() {
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

void GrpcStream::OnWriteDone(bool ok) {
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

void GrpcStream::OnReadDone(bool ok) {
  if (ok) {
    v1::BrokerMessage message;
    {
      // Reads follow each other, on different threads; this shows it to
      // ThreadSanitizer, which does not see inside gRPC.
      base::MutexLock lock(&mu_);
      message.Swap(&incoming_);
    }
    owner_->OnMessage(std::move(message), /*reader=*/0);
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

void GrpcStream::OnDone(const grpc::Status& status) {
  {
    // After all that other threads did with this stream; see OnReadDone.
    base::MutexLock lock(&mu_);
  }
  owner_->OnStreamEnded(NoThrow([&] { return proto::FromGrpcStatus(status); }));
}

}  // namespace gmb::internal
